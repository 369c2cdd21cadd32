//! Counts of messages by state, and estimates of memory.

use super::Queue;
use crate::state::{Place, State};

impl Queue {
    /// Number of pending and running messages. O(1).
    pub fn live(&self) -> u64 {
        (self.count_place(Place::Delayed)
            + self.count_place(Place::Retry)
            + self.count_place(Place::Due)
            + self.leases.len()
            + self.redriving.left.len()) as u64
    }

    pub(super) fn count_place(&self, place: Place) -> usize {
        let indexed = match place {
            Place::Running => self.leases.len(),
            _ => match self.records.at(place) {
                Some(index) => index.len(),
                None => self.waiting.count(place),
            },
        };
        indexed.saturating_sub(self.ghosts_at(place))
    }

    /// Stale entries: how many purged messages the indexes of this stored state
    /// still hold.
    pub(super) fn ghosts_at(&self, place: Place) -> usize {
        self.ghosts
            .get(place as usize)
            .map_or(0, |g| g.count as usize)
    }

    /// Number of messages in a state. O(1).
    pub fn count(&self, state: State) -> u64 {
        let count = |place| self.count_place(place) as u64;
        match state {
            State::Delayed => count(Place::Delayed),
            State::Retry => count(Place::Retry),
            State::Ready => {
                (self.waiting.plain.count(Place::Due) + self.redriving.left.len()) as u64
                    + self.grouped_ready
            }
            State::Blocked => {
                let due = self.waiting.grouped.count(Place::Due);
                let due = due.saturating_sub(self.ghosts_at(Place::Due));
                (due as u64).saturating_sub(self.grouped_ready)
            }
            State::Running => count(Place::Running),
            State::Finished => count(Place::Finished),
            State::Dead => count(Place::Dead),
            State::Cancelled => count(Place::Cancelled),
        }
    }

    /// Bytes allocated by the queue, roughly. O(lanes + schedules + consumers).
    pub fn memory_bytes(&self) -> usize {
        size_of::<Queue>()
            + self.store.memory_bytes()
            + self.ids.memory_bytes()
            + self.waiting.memory_bytes()
            + self.groups.memory_bytes()
            // About two words for each record in the order of its group, at the
            // usual fill of the tree nodes.
            + self.records.grouped * 20
            + self.line.memory_bytes()
            + self.expected.memory_bytes()
            + self.leases.memory_bytes()
            + self.remains.memory_bytes()
            + self.expiring.memory_bytes()
            + self.records.memory_bytes()
            + self.consumers.memory_bytes()
            + self.schedules.memory_bytes()
            + self.lateness.memory_bytes()
    }

    /// Roughly how many allocations have to be freed with the queue. The server
    /// uses it to decide whether to free in the background.
    pub fn free_effort(&self) -> usize {
        self.store.len() * 2 + self.records.dedup.entries().len() + 1
    }
}
