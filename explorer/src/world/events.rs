//! The events of a queue: a reader of its stream must know which messages wait and which run.

use std::collections::BTreeMap;

use super::{Key, Step, World};
use dq_queue::message::state::State;
use dq_queue::transition::{Kind, Transition};
use dq_queue::{Millis, Queue};

/// A message that waits, in any way.
const WAITS: &str = "waits";
/// A message that a consumer has.
const RUNS: &str = "runs";

impl World {
    /// Follows the transitions of a queue as a reader of its stream does.
    pub(super) fn note_transitions(&mut self, key: &[u8], all: &[Transition], step: &mut Step) {
        if all.is_empty() {
            return;
        }
        let known = self.told.entry(key.into()).or_default();
        for one in all {
            if one.id.is_empty() {
                known.clear();
                continue;
            }
            let was = known.get(&one.id).copied();
            let (needs, becomes) = match one.kind {
                Kind::Sent | Kind::Redriven => (None, Some(WAITS)),
                Kind::Delivered => (Some(WAITS), Some(RUNS)),
                Kind::Acked | Kind::Nacked | Kind::Timeout => (Some(RUNS), Some(WAITS)),
                Kind::Dead | Kind::Cancelled => (was, None),
                Kind::Replaced | Kind::Purged => (was, None),
                Kind::Ready | Kind::Released => (Some(WAITS), Some(WAITS)),
                Kind::Noted | Kind::Rescheduled => (was, was),
            };
            if was != needs {
                let id = String::from_utf8_lossy(&one.id);
                let (kind, was) = (one.kind.name(), was.unwrap_or("is not there"));
                step.faults
                    .push(format!("events: {kind} of {id}, which {was}"));
            }
            // An ack is the end, though the record may stay.
            match becomes.filter(|_| one.kind != Kind::Acked) {
                Some(state) => known.insert(one.id.clone(), state),
                None => known.remove(&one.id),
            };
        }
    }

    /// A queue has come to this key with all its messages, of which its stream tells nothing.
    pub(super) fn knows_all(&mut self, key: &[u8]) {
        if let Some(place) = self.places.get(key) {
            let now = place.queue.time(self.moment());
            self.told.insert(key.into(), states(&place.queue, now));
        }
    }

    /// Compares the events of the streams with the queues.
    ///
    /// # Errors
    /// A sentence that names the first difference.
    pub fn check_told(&self) -> Result<(), String> {
        let none = BTreeMap::new();
        for (key, place) in &self.places {
            let now = place.queue.time(self.moment());
            // An expiry is told when the timer comes.
            if place.queue.settings().events.is_none() || place.queue.has_overdue_expiry(now) {
                continue;
            }
            let (known, seen) = (
                self.told.get(key).unwrap_or(&none),
                states(&place.queue, now),
            );
            if *known != seen {
                return Err(format!("the stream has told {known:?}, and it is {seen:?}"));
            }
        }
        Ok(())
    }
}

/// The messages of a queue that wait or run, by id.
fn states(queue: &Queue, now: Millis) -> BTreeMap<Key, &'static str> {
    let messages = queue.parts();
    let states = messages.messages().filter_map(|numbered| {
        let state = match queue.view(numbered.seq, now)?.state {
            State::Running => RUNS,
            State::Finished | State::Dead | State::Cancelled => return None,
            _ => WAITS,
        };
        Some((queue.id_of(numbered.seq, numbered.message).to_box(), state))
    });
    states.collect()
}
