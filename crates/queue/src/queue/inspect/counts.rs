//! Counts of messages by state, and estimates of memory.

use std::sync::Arc;

use crate::collections::footprint::{allocated, tree};
use crate::dead_letters::DeadLetters;
use crate::detached::Detached;
use crate::index::dedup_ids::DedupIds;
use crate::index::fair_line::Usage;
use crate::index::siblings::AllSiblings;
use crate::message::state::{State, StoredState};
use crate::queue::Queue;
use crate::settings::Settings;
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
            + self.parts_bytes()
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
            + tree(size_of::<(Receipt, Millis)>(), self.state.seldom.old_ends.len())
            + self.state.seldom.schedules.memory_bytes()
            + self.state.lateness.memory_bytes()
            + self.dead_letters().map_or(0, DeadLetters::memory_bytes)
            + self.detached().map_or(0, Detached::memory_bytes)
            + self.state.seldom.batches.as_ref().map_or(0, |batches| batches.memory_bytes())
            + self.state.seldom.fair.as_ref().map_or(0, |fair| {
                fair.memory_bytes() + self.state.groups.with_extension() * allocated(size_of::<Usage>())
            })
            + self.state.seldom.limits.as_ref().map_or(0, |limits| limits.memory_bytes())
            + self.dedup_ids().map_or(0, DedupIds::memory_bytes)
    }

    /// Bytes allocated for the parts that the queue has used.
    fn parts_bytes(&self) -> usize {
        let (state, indexes) = (&self.state, &self.indexes);
        // Settings that several queues share count for none of them.
        let has_own_settings = Arc::strong_count(&state.settings) == 1;
        let settings = allocated(size_of::<Settings>() + 2 * size_of::<usize>());
        usize::from(has_own_settings) * settings
            + state.store.box_bytes()
            + state.leases.box_bytes()
            + state.records.box_bytes()
            + state.consumers.box_bytes()
            + state.seldom.box_bytes()
            + state.seldom.old_ends.box_bytes()
            + state.seldom.schedules.box_bytes()
            + state.totals.box_bytes()
            + state.lateness.box_bytes()
            + state.seldom.window.box_bytes()
            + state.groups.box_bytes()
            + indexes.waiting.box_bytes()
            + indexes.expected.box_bytes()
            + indexes.held.box_bytes()
            + indexes.first_dues.box_bytes()
            + indexes.expiring.box_bytes()
            + indexes.ready_line.box_bytes()
            + self.notes.watched.box_bytes()
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
