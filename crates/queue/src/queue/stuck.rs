//! Loops that would never end. Each loop that takes the first entry of an index away, until the
//! index has no more, relies on the entry being gone behind its turn. Where an index is broken it
//! is not. Such a loop ends, and says so ([`Queue::note_stuck`]): a server that goes on and alarms
//! is better than one that stands still.

use super::event::Event;
use super::Queue;
use crate::Millis;

/// After this time, in ms, kinds of events that have made no progress are tried again.
pub(super) const AGAIN_AFTER: Millis = 1000;

/// The first entry that a loop has met in its last turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Last<T>(Option<T>);

impl<T: PartialEq> Last<T> {
    /// Nothing was met.
    pub fn none() -> Last<T> {
        Last(None)
    }

    /// Whether the loop meets the same entry again.
    pub fn is_again(&mut self, first: T) -> bool {
        self.0.replace(first).as_ref() == self.0.as_ref()
    }
}

/// The kinds of events that have made no progress.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct StuckEvents(u32);

impl StuckEvents {
    pub fn add(&mut self, event: Event) {
        self.0 |= 1 << event as u32;
    }

    pub fn has(self, event: Event) -> bool {
        self.0 & 1 << event as u32 != 0
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl Queue {
    /// Notes that a loop was ended because it made no progress. `what` is what it was to do; the
    /// server tells it ([`crate::op::Told::stuck`]).
    #[cold]
    pub fn note_stuck(&mut self, what: &'static str) {
        self.notes.effects.told_mut().stuck = Some(what);
    }

    /// The entry that an event of this kind takes away, with its time; `None` if there is none, or
    /// if nothing can keep the event from taking it away.
    #[inline]
    pub(super) fn first_of(&self, event: Event) -> Option<(Millis, u64)> {
        match event {
            Event::LeaseEnd => self.state.leases.first_end(),
            Event::Expiry => self.indexes.expiring.first().map(|(key, ())| key),
            Event::ParkEnd => self.indexes.held.first_end(),
            Event::Due => self.indexes.waiting.next_promotion(),
            Event::GroupWake => self
                .state
                .groups
                .next_wake()
                .map(|(at, ix)| (at, ix.number())),
            Event::Breaker => self.next_breaker_change().map(|(at, ix)| (at, ix.number())),
            Event::Limit => self.next_limit_time().map(|(at, ix)| (at, ix.number())),
            Event::Join => self
                .indexes
                .expected
                .next()
                .map(|key| (key.join.time, key.seq)),
            Event::SettledAge => self.next_settled_age(),
            Event::DeadAge | Event::DeadCount => self.state.records.oldest_dead(),
            Event::ConsumerAge => self.state.consumers.next_forget().map(|at| (at, 0)),
            Event::Fire => self.state.seldom.schedules.first_by_time(),
            Event::Release => self.indexes.held.dying.first().map(|(seq, ())| (0, seq)),
            Event::SettledCount => self.state.records.oldest_settled(),
            Event::PauseEnd | Event::DedupAge | Event::DedupIdEnd => None,
        }
    }
}
