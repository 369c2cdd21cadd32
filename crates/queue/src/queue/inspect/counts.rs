//! Counts of messages by state, and estimates of memory.

use crate::collections::footprint::{allocated, tree};
use crate::dead_letters::DeadLetters;
use crate::detached::Detached;
use crate::index::dedup_ids::DedupIds;
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
            + self.state.leases.len()
            + self.held_count()) as u64
    }

    pub(in crate::queue) fn count_stored(&self, stored: StoredState) -> usize {
        match stored {
            StoredState::Running => self.state.leases.len(),
            StoredState::Held => self.held_count(),
            stored if stored.is_ended() => {
                let indexes = self.state.records.indexes(stored);
                indexes.map(|index| index.len()).sum()
            }
            stored => self.indexes.waiting.count(stored),
        }
    }

    /// Number of messages in a state. O(1).
    pub fn count(&self, state: State) -> u64 {
        let count = |stored| self.count_stored(stored) as u64;
        match state {
            State::Delayed => count(StoredState::Delayed),
            State::Retry => count(StoredState::Retry),
            State::Ready => {
                self.indexes.waiting.plain.count(StoredState::Due) as u64
                    + self.indexes.grouped_ready
            }
            State::Blocked => {
                let due = self.indexes.waiting.grouped.count(StoredState::Due) as u64;
                debug_assert!(
                    due >= self.indexes.grouped_ready,
                    "more are ready than are due"
                );
                due.saturating_sub(self.indexes.grouped_ready)
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
        self.indexes.held.by_children
    }

    /// Number of held messages that wait for a signal. O(1).
    pub fn parked(&self) -> u64 {
        self.indexes.held.parked
    }

    /// Bytes allocated by the queue, roughly. O(lanes + schedules + consumers).
    pub fn memory_bytes(&self) -> usize {
        size_of::<Queue>()
            + self.state.store.memory_bytes()
            + self.state.ids.memory_bytes()
            + self.indexes.waiting.memory_bytes()
            + self.indexes.held.memory_bytes()
            + self.siblings().map_or(0, AllSiblings::memory_bytes)
            + self.indexes.first_dues.memory_bytes()
            + self.state.groups.memory_bytes()
            // Estimate: two words for each record in its group's order, at the usual
            // fill factor.
            + self.state.records.grouped * 20
            + self.indexes.ready_line.memory_bytes()
            + self.indexes.expected.memory_bytes()
            + self.state.leases.memory_bytes()
            + self.notes.pages.memory_bytes()
            + self.indexes.expiring.memory_bytes()
            + self.state.records.memory_bytes()
            + self.state.consumers.memory_bytes()
            + tree(size_of::<(Receipt, Millis)>(), self.state.old_ends.len())
            + self.state.schedules.memory_bytes()
            + self.state.lateness.memory_bytes()
            + self.dead_letters().map_or(0, DeadLetters::memory_bytes)
            + self.detached().map_or(0, Detached::memory_bytes)
            + self.state.batches.as_ref().map_or(0, |batches| batches.memory_bytes())
            + self.state.fair.as_ref().map_or(0, |fair| {
                fair.memory_bytes() + self.state.groups.with_extension() * allocated(size_of::<Usage>())
            })
            + self.state.limits.as_ref().map_or(0, |limits| limits.memory_bytes())
            + self.dedup_ids().map_or(0, DedupIds::memory_bytes)
    }

    /// Roughly how many allocations have to be freed with the queue. The server
    /// uses it to decide whether to free in the background.
    pub fn free_effort(&self) -> usize {
        self.state.store.len() * 2
            + self.state.records.dedup.entries().len()
            + self.dedup_ids().map_or(0, DedupIds::len)
            + 1
    }
}
