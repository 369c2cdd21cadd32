//! Applies the same operations to the queue and to the model, and compares all state that
//! a client can see.

mod runs;
mod seen;

use super::model::{Model, Msg};
use super::ops::{Step, START};
use crate::error::Error;
use crate::message::state::{State, StoredState};
use crate::op::{Before, Done, Fetch, Moment, Op, Ticked};
use crate::queue::Queue;
use crate::schedule::Extras;
use crate::settings::{Changes, Clock, Settings};
use crate::sums::Count;
use crate::{GroupIx, Millis, Seq, NEVER};
use seen::{listed, seen_of_model};

pub use runs::{run, run_burst, run_in_slices, run_lagging, run_with_steps_back};
pub use seen::all_seen;

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

    pub fn compare(&mut self) {
        let (queue, model, now) = (&self.queue, &self.model, self.now);
        let seen = all_seen(queue, now);
        let expected = seen_of_model(model);
        for (seen, expected) in seen.iter().zip(&expected) {
            assert_eq!(seen, expected, "what is seen of a message");
        }
        assert_eq!(seen.len(), expected.len(), "how many messages there are");
        for state in State::ALL {
            let expected = model.list(state);
            let counted = queue.count(state);
            assert_eq!(counted, expected.len() as u64, "count of {state:?}");
            let back: Vec<Seq> = expected.iter().rev().copied().collect();
            assert_eq!(
                listed(queue, state, true, now),
                back,
                "{state:?} from the end"
            );
            let of_list = listed(queue, state, false, now);
            assert_eq!(of_list, expected, "list of {state:?}");
        }
        assert_eq!((queue.live(), queue.bytes()), model.live());
        assert_eq!(*queue.totals(), model.totals);
        self.compare_schedules();
        let gives = [false, true].map(|no_ack| {
            let fetch = Fetch {
                no_ack,
                ..Fetch::one()
            };
            let gives = model.allowance(no_ack) > 0 && model.first_in_line(no_ack).is_some();
            assert_eq!(queue.can_serve(&fetch, now), gives, "can serve");
            gives
        });
        assert_eq!(queue.gives(now), gives, "gives");
        let waits = |m: &&Msg| matches!(m.stored, StoredState::Delayed | StoredState::Retry);
        let next_due = model.msgs.iter().filter(waits).map(|m| m.due).min();
        assert_eq!(queue.next_due_at(now), next_due, "next due");
        assert_eq!(queue.oldest_due_age(now), model.oldest_due_age());
        let batches = queue.batches().into_iter();
        let batches = batches.flat_map(|batches| batches.open_after(0));
        let mut batches: Vec<_> = batches
            .map(|(_, batch)| (batch.name.to_vec(), batch.counts, batch.held_count()))
            .collect();
        batches.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(batches, model.batches_listed(), "batches");
        self.compare_groups();
        self.compare_breakers();
        self.compare_wake();
        self.compare_peek();
    }

    /// The breakers of the groups and of the ungrouped messages.
    fn compare_schedules(&self) {
        let seen = self.queue.schedules().map(|(name, schedule)| {
            let Extras {
                limits,
                paused,
                skipped,
            } = schedule.extras();
            let next = schedule.next_at.or(paused);
            (name.to_vec(), limits, paused.is_some(), skipped, next)
        });
        let expected = self.model.schedules.iter().map(|s| {
            let next = Some(s.next_at);
            (
                s.name.clone(),
                s.limits,
                s.paused,
                Count::of(s.skipped),
                next,
            )
        });
        let mut expected: Vec<_> = expected.collect();
        expected.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(seen.collect::<Vec<_>>(), expected, "schedules");
    }

    fn compare_breakers(&self) {
        let (queue, model, now) = (&self.queue, &self.model, self.now);
        assert_eq!(queue.breakers_open(now), model.breakers_open());
        let groups = (0..model.groups.len()).map(Some);
        for who in groups.chain([None]) {
            let expected = model.breaker(who);
            let ix = match who {
                None => Some(GroupIx::NONE),
                Some(number) => queue.groups.find(&model.groups[number].name),
            };
            let circuit = ix.and_then(|ix| queue.breaker(ix));
            let state = match (expected.until, expected.half_open) {
                (Some(_), _) => "open",
                (None, true) => "half-open",
                (None, false) => "closed",
            };
            assert_eq!(circuit.map_or("closed", |c| c.state(now)), state);
            let until = circuit.and_then(|c| c.open_until(now));
            assert_eq!(until, expected.until, "open until");
            let probe = circuit.and_then(|c| c.probe());
            assert_eq!(probe, expected.probe, "probe");
        }
    }

    /// The queue may wake too early and find nothing to do, but never too late.
    fn compare_wake(&self) {
        if self.queue.clock() != Clock::Server {
            assert_eq!(self.queue.next_wake(self.now, true), None);
            return;
        }
        let wake = self.queue.next_wake(self.now, false).unwrap_or(NEVER);
        let next = self.model.next_wake().unwrap_or(NEVER);
        assert!(wake <= next, "wakes at {wake}, must at {next}");
    }

    /// PEEK must return the messages that a FETCH would give.
    fn compare_peek(&self) {
        let mut model = self.model.clone();
        let fetch = Op::fetch(Fetch {
            count: 20,
            ..Fetch::one()
        });
        let Ok(Done::Fetched(given)) = model.apply(&fetch, Moment::at_ms(self.now)) else {
            unreachable!("a FETCH fetches");
        };
        let given: Vec<Seq> = given.iter().map(|d| d.seq).collect();
        assert_eq!(self.queue.peek(20, self.now), given, "what comes next");
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

/// The result of an operation, without the messages that FETCH hands out.
fn told(mut done: Result<Done, Error>) -> Result<Done, Error> {
    if let Ok(Done::Fetched(deliveries)) = &mut done {
        for delivery in deliveries {
            delivery.gone = None;
        }
    }
    done
}

fn ticked<E: std::fmt::Debug>(done: Result<Done, E>) -> Ticked {
    match done {
        Ok(Done::Ticked(ticked)) => ticked,
        other => unreachable!("{other:?}"),
    }
}
