//! The index of pending messages: those that wait for their due time or for a
//! consumer.
//!
//! Ungrouped messages are delivered in the order of their lane (`lane.rs`). Grouped
//! messages have lanes of their own, which only serve to find them by time: each
//! group has an order of its own (`groups/group/`).

use super::lane::{Lanes, Run};
use super::pending_key::PendingKey;
use crate::message::state::StoredState;
use crate::{Millis, Seq, TimeIndex};

/// All pending messages of a queue.
#[derive(Debug, Clone, Default)]
pub struct Waiting {
    /// Messages without a group.
    pub plain: Lanes,
    /// Messages with a group.
    pub grouped: Lanes,
}

impl Waiting {
    /// No messages.
    pub const fn new() -> Waiting {
        Waiting {
            plain: Lanes::new(),
            grouped: Lanes::new(),
        }
    }

    /// Inserts a message. O(log n).
    pub fn insert(&mut self, stored: StoredState, pending_key: PendingKey) {
        self.lanes_mut(&pending_key).insert(stored, pending_key);
    }

    /// Removes a message.
    pub fn remove(&mut self, stored: StoredState, pending_key: PendingKey) {
        self.lanes_mut(&pending_key).remove(stored, pending_key);
    }

    /// Moves a message from the state `from` to those that are due. O(log n).
    pub fn promote(&mut self, from: StoredState, pending_key: PendingKey) {
        self.lanes_mut(&pending_key).promote(from, pending_key);
    }

    fn lanes_mut(&mut self, pending_key: &PendingKey) -> &mut Lanes {
        match pending_key.grouped {
            true => &mut self.grouped,
            false => &mut self.plain,
        }
    }

    /// The earliest due time of the messages that are due at `now`, promoted or not.
    /// O(lanes).
    pub fn earliest_due(&self, now: Millis) -> Option<Millis> {
        let lanes = [&self.plain, &self.grouped].into_iter();
        lanes.filter_map(|lanes| lanes.earliest_due(now)).min()
    }

    /// The message that is promoted next: its due time and number. O(lanes).
    pub fn next_promotion(&self) -> Option<(Millis, Seq)> {
        let lanes = [&self.plain, &self.grouped].into_iter();
        lanes.filter_map(Lanes::next_promotion).min()
    }

    /// The messages that are promoted next and due by `by`, at most `most`: as many
    /// as are ungrouped, in one index, and before all grouped ones. `None` if the
    /// next one is grouped or not due.
    pub fn next_run(&self, by: Millis, most: usize) -> Option<Run> {
        let grouped = self.grouped.next_promotion();
        let bound = (by.saturating_add(1), 0);
        self.plain
            .next_run(grouped.map_or(bound, |head| head.min(bound)), most)
    }

    /// Whether at least `most` messages of one kind are due at `now` and not promoted
    /// yet. O(most).
    pub fn is_burst(&self, now: Millis, most: usize) -> bool {
        let unpromoted = [StoredState::Delayed, StoredState::Retry].into_iter();
        let mut indexes = unpromoted.flat_map(|stored| self.indexes(stored));
        indexes.any(|index| {
            let due = index.iter().take_while(|((due, _), ())| *due <= now);
            due.take(most).count() == most
        })
    }

    /// The number of messages in this state; 0 unless it is a pending one.
    /// O(lanes).
    pub fn count(&self, stored: StoredState) -> usize {
        self.plain.count(stored) + self.grouped.count(stored)
    }

    /// The indexes of all messages in this state.
    pub fn indexes(&self, stored: StoredState) -> impl Iterator<Item = &TimeIndex> + '_ {
        self.plain
            .indexes(stored)
            .chain(self.grouped.indexes(stored))
    }

    /// The earliest due time of all messages that are not due yet at `now`.
    pub fn next_due(&self, now: Millis) -> Option<Millis> {
        let after = |index: &TimeIndex| {
            let later = index.next_after(&(now, Seq::MAX));
            later.map(|((due, _), ())| due)
        };
        let unpromoted = [StoredState::Delayed, StoredState::Retry].into_iter();
        let indexes = unpromoted.flat_map(|stored| self.indexes(stored));
        indexes.filter_map(after).min()
    }

    /// Whether no message waits. O(lanes).
    pub fn is_empty(&self) -> bool {
        let all = [&self.plain, &self.grouped].into_iter();
        all.flat_map(Lanes::iter).all(|(_, lane)| lane.is_empty())
    }

    /// All indexes, to be freed.
    pub fn into_indexes(self) -> Vec<TimeIndex> {
        let grouped = self.grouped.into_indexes();
        self.plain.into_indexes().chain(grouped).collect()
    }

    /// Bytes allocated. O(lanes).
    pub fn memory_bytes(&self) -> usize {
        self.plain.memory_bytes() + self.grouped.memory_bytes()
    }
}
