//! Applies the same operations to the queue and to the model, and compares all state that
//! a client can see.

mod runs;

use super::ops::{Step, START};
use crate::error::Error;
use crate::op::{Before, Done, Moment, Op, Ticked};
use crate::queue::model::compare::{told, Compared};
use crate::queue::model::Model;
use crate::queue::Queue;
use crate::settings::{Changes, Clock, Settings};
use crate::Millis;

pub use runs::{run, run_burst, run_in_slices, run_lagging, run_with_steps_back};

const SALT: u64 = 7;

/// The queue and its model.
pub struct Pair {
    pub queue: Queue,
    pub model: Model,
    pub now: Millis,
}

impl Pair {
    pub fn new(changes: &Changes, manual: bool) -> Pair {
        let settings = Settings::default().with(changes);
        let clock = match manual {
            true => Clock::Manual(START),
            false => Clock::Server,
        };
        Pair {
            queue: Queue::new(settings.clone(), clock, SALT),
            model: Model::new(settings, manual.then_some(START), SALT),
            now: START,
        }
    }

    /// Moves the queue and the model to time `now` and compares the results.
    pub fn advance(&mut self, now: Millis) {
        self.now = now;
        let (done, expected) = match self.queue.clock() {
            Clock::Server => {
                let progress = self.queue.advance(now, u64::MAX);
                assert!(progress.caught_up);
                (progress.ticked, self.model.advance(now))
            }
            Clock::Manual(_) => {
                let op = Op::Advance {
                    to: now,
                    // A server without memory in some cases.
                    skip_fires: now.is_multiple_of(4),
                };
                let moment = Moment::at_ms(now);
                let done = self.queue.apply(&op, moment);
                (ticked(done), ticked(self.model.apply(&op, moment)))
            }
        };
        assert_eq!(done, expected, "what time has done by {now}");
    }

    /// Applies one operation to the queue and the model, and compares the results.
    pub fn apply(&mut self, op: &Op) {
        let moment = Moment::at_ms(self.now);
        let done = perform(&mut self.queue, op, moment);
        self.compare_groups_of_deliveries(&done);
        let done = told(done);
        let expected = self.model.apply(op, moment);
        assert_eq!(done, expected, "what came of {op:?}");
        if let Ok(done) = done {
            self.queue.take_back(done);
        }
    }

    /// A delivered message must show its group, even if the message and the group
    /// are gone already.
    fn compare_groups_of_deliveries(&self, done: &Result<Done, Error>) {
        let Ok(Done::Fetched(given)) = done else {
            return;
        };
        for delivered in given {
            let view = self.queue.view_delivered(delivered, self.now);
            let known = self.model.msgs.iter().find(|m| m.seq == delivered.seq);
            let Some(group) = known.map(|m| m.group) else {
                // The model does not know the message yet. The FETCH has acknowledged a run
                // whose end sent it, and then delivered it.
                continue;
            };
            let expected = group.map(|number| &*self.model.groups[number].name);
            let seen = view.and_then(|view| view.group);
            assert_eq!(seen, expected, "the group of what is delivered");
        }
    }

    /// Applies a step to the queue and the model, and compares them. Some purged messages
    /// are freed before; that must not be visible.
    pub fn step(&mut self, step: &Step) {
        self.queue.free_garbage((self.now % 3) as usize);
        self.advance(self.now + step.wait);
        let op = step.op.resolve(&self.model);
        self.apply(&op);
        self.advance(self.now);
        self.compare();
    }

    /// Sets the clock of the queue and of the model back by `by` ms, and lets their
    /// leases last until `spare` ms from then on.
    pub fn set_back(&mut self, by: Millis, spare: Millis) {
        self.now -= by;
        let before = Before {
            cut: by,
            spare: self.now + spare,
            ..Before::default()
        };
        self.queue.prepare(&before, Moment::at_ms(self.now));
        if by > 0 {
            self.model.cut(by);
        }
        self.model.spare(self.now + spare);
        self.compare();
        self.advance(self.now);
        self.compare();
    }

    /// The deduplication ids that still count, and the ids of their first messages.
    fn compare_dedup_ids(&self) {
        let known = self.queue.dedup_ids().into_iter();
        let known = known.flat_map(|ids| ids.entries());
        let counts = |of: &(&[u8], &[u8], Millis)| of.2 > self.now;
        let mut seen: Vec<_> = known.filter(counts).collect();
        let expected = self.model.dedup_ids.iter();
        let mut expected: Vec<_> = expected
            .map(|(name, id, until)| (&**name, &**id, *until))
            .filter(counts)
            .collect();
        seen.sort_unstable();
        expected.sort_unstable();
        assert_eq!(seen, expected, "deduplication ids at {}", self.now);
    }

    pub fn compare(&self) {
        self.compare_dedup_ids();
        let (queue, model, now) = (&self.queue, &self.model, self.now);
        Compared { queue, model, now }.all();
    }
}

/// Applies an operation as a server does, which asks first whether an ACKSEND can be
/// done.
fn perform(queue: &mut Queue, op: &Op, moment: Moment) -> Result<Done, Error> {
    if let Op::AckSend(ack_send) = op {
        if let Err(refused) = queue.can_ack_send(ack_send, moment) {
            queue.apply(&Op::Tick, moment)?;
            return Err(refused);
        }
    }
    queue.apply(op, moment)
}

fn ticked<E: std::fmt::Debug>(done: Result<Done, E>) -> Ticked {
    match done {
        Ok(Done::Ticked(ticked)) => ticked,
        other => unreachable!("{other:?}"),
    }
}
