//! Compares a queue with its model in everything that a client can see.

use super::seen::{all_seen, listed, seen_of_model};
use super::{Model, Msg};
use crate::error::Error;
use crate::message::state::{State, StoredState};
use crate::op::{Done, Fetch, Moment, Op};
use crate::queue::Queue;
use crate::schedule::Extras;
use crate::settings::Clock;
use crate::sums::Count;
use crate::{GroupIx, Millis, Seq, NEVER};

/// A queue and its model at a time (Unix ms) up to which both have processed their events.
#[derive(Debug)]
pub struct Compared<'a> {
    pub queue: &'a Queue,
    pub model: &'a Model,
    pub now: Millis,
}

impl Compared<'_> {
    /// Compares everything.
    ///
    /// # Panics
    /// The two differ.
    pub fn all(&self) {
        let (queue, model, now) = (self.queue, self.model, self.now);
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
        let (queue, model, now) = (self.queue, self.model, self.now);
        assert_eq!(queue.breakers_open(now), model.breakers_open());
        let groups = (0..model.groups.len()).map(Some);
        for who in groups.chain([None]) {
            let expected = model.breaker(who);
            let ix = match who {
                None => Some(GroupIx::NONE),
                Some(number) => queue.state.groups.find(&model.groups[number].name),
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

/// The result of an operation, without the messages that FETCH hands out.
pub fn told(mut done: Result<Done, Error>) -> Result<Done, Error> {
    if let Ok(Done::Fetched(deliveries)) = &mut done {
        for delivery in deliveries {
            delivery.gone = None;
        }
    }
    done
}
