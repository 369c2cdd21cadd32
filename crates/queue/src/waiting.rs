//! What waits for its time or for a consumer.
//!
//! The due ungrouped messages of a lane are in the order in which they are
//! given. Grouped ones stand in lanes of their own, by time, and in the order
//! of their group (`group.rs`).

use std::ops::Bound;

use super::lane::{Lanes, Run};
use super::state::Place;
use super::{Millis, Seq, TimeIndex};

/// A message as what waits knows it.
#[derive(Debug, Clone, Copy)]
pub struct Waiter {
    /// Its number.
    pub seq: Seq,
    /// When it is due.
    pub due: Millis,
    /// Lower goes first.
    pub priority: i8,
    /// Whether it has a group.
    pub grouped: bool,
    /// Bytes of its payload.
    pub size: u64,
}

/// All that waits in a queue.
#[derive(Debug, Clone, Default)]
pub struct Waiting {
    /// The ungrouped messages.
    pub plain: Lanes,
    /// The grouped ones.
    pub grouped: Lanes,
}

impl Waiting {
    /// Enters a message.
    pub fn insert(&mut self, place: Place, waiter: Waiter) {
        self.lanes_mut(&waiter).insert(place, waiter);
    }

    /// Takes a message out; whether it was there.
    pub fn remove(&mut self, place: Place, waiter: Waiter) -> bool {
        self.lanes_mut(&waiter).remove(place, waiter)
    }

    /// A message's time has come.
    pub fn promote(&mut self, from: Place, waiter: Waiter) {
        self.lanes_mut(&waiter).promote(from, waiter);
    }

    /// The payload of a message here has another size from now on.
    pub fn resize(&mut self, place: Place, waiter: Waiter, size: u64) {
        let before = waiter.size;
        self.lanes_mut(&waiter).resize(place, waiter, before, size);
    }

    /// Whether a message stands here.
    pub fn contains(&self, place: Place, waiter: &Waiter) -> bool {
        match waiter.grouped {
            true => self.grouped.contains(place, waiter),
            false => self.plain.contains(place, waiter),
        }
    }

    fn lanes_mut(&mut self, waiter: &Waiter) -> &mut Lanes {
        match waiter.grouped {
            true => &mut self.grouped,
            false => &mut self.plain,
        }
    }

    /// The next message to be promoted: when, and which.
    pub fn next_promotion(&self) -> Option<(Millis, Seq)> {
        let lanes = [&self.plain, &self.grouped].into_iter();
        lanes.filter_map(Lanes::next_promotion).min()
    }

    /// The next messages to be promoted by `by`, `most` at most, as far as they are
    /// ungrouped and stand in one index.
    pub fn next_run(&self, by: Millis, most: usize) -> Option<Run> {
        let grouped = self.grouped.next_promotion();
        let bound = (by.saturating_add(1), 0);
        self.plain
            .next_run(grouped.map_or(bound, |head| head.min(bound)), most)
    }

    /// Whether so many messages of one kind that `counts` lets pass are due at
    /// `now` and not promoted yet. O(most), and what does not pass.
    pub fn is_burst(&self, now: Millis, most: usize, counts: impl Fn(Seq) -> bool) -> bool {
        let unpromoted = [Place::Delayed, Place::Retry].into_iter();
        let mut indexes = unpromoted.flat_map(|place| self.indexes(place));
        indexes.any(|index| {
            let due = index.iter().take_while(|((due, _), ())| *due <= now);
            let due = due.filter(|((_, seq), ())| counts(*seq));
            due.take(most).count() == most
        })
    }

    /// Messages at this place, which must be a pending one.
    pub fn count(&self, place: Place) -> usize {
        self.plain.count(place) + self.grouped.count(place)
    }

    /// The indexes of all messages at this place.
    pub fn indexes(&self, place: Place) -> impl Iterator<Item = &TimeIndex> + '_ {
        self.plain.indexes(place).chain(self.grouped.indexes(place))
    }

    /// The earliest due time of all that is not due yet at `now` and that
    /// `counts` lets pass.
    pub fn next_due(&self, now: Millis, counts: impl Fn(Seq) -> bool) -> Option<Millis> {
        let after = |index: &TimeIndex| {
            let later = index.range_from(Bound::Excluded((now, Seq::MAX)));
            let mut later = later.map(|(key, ())| key);
            later.find(|(_, seq)| counts(*seq)).map(|(due, _)| due)
        };
        let unpromoted = [Place::Delayed, Place::Retry].into_iter();
        let indexes = unpromoted.flat_map(|place| self.indexes(place));
        indexes.filter_map(after).min()
    }

    /// All indexes, for freeing.
    pub fn into_indexes(self) -> Vec<TimeIndex> {
        let grouped = self.grouped.into_indexes();
        self.plain.into_indexes().chain(grouped).collect()
    }

    /// Bytes allocated.
    pub fn memory_bytes(&self) -> usize {
        self.plain.memory_bytes() + self.grouped.memory_bytes()
    }
}
