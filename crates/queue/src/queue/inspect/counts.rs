//! Counts of messages by state, and estimates of memory.

use crate::collections::footprint::{allocated, tree};
use crate::dead_letters::DeadLetters;
use crate::detached::Detached;
use crate::index::fair_line::Usage;
use crate::index::siblings::AllSiblings;
use crate::message::state::{State, StoredState};
use crate::queue::Queue;
use crate::{Millis, Receipt};

impl Queue {
    /// Number of pending and running messages. O(1).
    pub fn live(&self) -> u64 {
        (self.count_stored(StoredState::Delayed)
            + self.count_stored(StoredState::Retry)
            + self.count_stored(StoredState::Due)
            + self.leases.len()
            + self.held_count()) as u64
    }

    pub(in crate::queue) fn count_stored(&self, stored: StoredState) -> usize {
        match stored {
            StoredState::Running => self.leases.len(),
            StoredState::Held => self.held_count(),
            stored if stored.is_ended() => {
                let indexes = self.records.indexes(stored);
                indexes.map(|index| index.len()).sum()
            }
            stored => self.waiting.count(stored),
        }
    }

    /// Number of messages in a state. O(1).
    pub fn count(&self, state: State) -> u64 {
        let count = |stored| self.count_stored(stored) as u64;
        match state {
            State::Delayed => count(StoredState::Delayed),
            State::Retry => count(StoredState::Retry),
            State::Ready => self.waiting.plain.count(StoredState::Due) as u64 + self.grouped_ready,
            State::Blocked => {
                let due = self.waiting.grouped.count(StoredState::Due) as u64;
                debug_assert!(due >= self.grouped_ready, "more are ready than are due");
                due.saturating_sub(self.grouped_ready)
            }
            State::Running => count(StoredState::Running),
            State::Finished => count(StoredState::Finished),
            State::Dead => count(StoredState::Dead),
            State::Cancelled => count(StoredState::Cancelled),
            State::Held => self.held_count() as u64,
        }
    }

    /// Number of held messages that wait for children. O(1).
    pub fn held_by_children(&self) -> u64 {
        self.held.by_children
    }

    /// Number of held messages that wait for a signal. O(1).
    pub fn parked(&self) -> u64 {
        self.held.parked
    }

    /// Bytes allocated by the queue, roughly. O(lanes + schedules + consumers).
    pub fn memory_bytes(&self) -> usize {
        size_of::<Queue>()
            + self.store.memory_bytes()
            + self.ids.memory_bytes()
            + self.waiting.memory_bytes()
            + self.held.memory_bytes()
            + self.siblings().map_or(0, AllSiblings::memory_bytes)
            + self.first_dues.memory_bytes()
            + self.groups.memory_bytes()
            // Estimate: two words for each record in its group's order, at the usual
            // fill factor.
            + self.records.grouped * 20
            + self.ready_line.memory_bytes()
            + self.expected.memory_bytes()
            + self.leases.memory_bytes()
            + self.pages.memory_bytes()
            + self.expiring.memory_bytes()
            + self.records.memory_bytes()
            + self.consumers.memory_bytes()
            + tree(size_of::<(Receipt, Millis)>(), self.old_ends.len())
            + self.schedules.memory_bytes()
            + self.lateness.memory_bytes()
            + self.dead_letters().map_or(0, DeadLetters::memory_bytes)
            + self.detached().map_or(0, Detached::memory_bytes)
            + self.batches.as_ref().map_or(0, |batches| batches.memory_bytes())
            + self.fair.as_ref().map_or(0, |fair| {
                fair.memory_bytes() + self.groups.with_extension() * allocated(size_of::<Usage>())
            })
            + self.limits.as_ref().map_or(0, |limits| limits.memory_bytes())
    }

    /// Roughly how many allocations have to be freed with the queue. The server
    /// uses it to decide whether to free in the background.
    pub fn free_effort(&self) -> usize {
        self.store.len() * 2 + self.records.dedup.entries().len() + 1
    }
}
