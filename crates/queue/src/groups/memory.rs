//! The memory of a queue's groups: how much it is, and how it is freed in slices.

use super::group::{GroupExtension, GroupSettings};
use super::{Groups, NEIGHBOURS};
use crate::collections::footprint::{allocated, tree};
use crate::index::order_key::OrderKey;
use crate::GroupIx;

/// How many entries of one large group are freed in one step.
const AT_A_TIME: usize = 1024;

impl Groups {
    /// Frees up to `most` groups, or a part of one very large group. Returns false
    /// when nothing is left. Only for freeing a large table in slices: it must not
    /// be used for anything else afterwards.
    pub fn drop_some(&mut self, most: usize) -> bool {
        for _ in (0..most).step_by(NEIGHBOURS) {
            let Some(mut groups) = self.slots.last_page() else {
                return self.wakes.drain_some(AT_A_TIME)
                    + self.held.drain_some(AT_A_TIME)
                    + self.breaker_times.drain_some(AT_A_TIME)
                    > 0;
            };
            if groups.any(|group| group.drain_many(AT_A_TIME)) {
                return true;
            }
            drop(groups);
            self.slots.drop_last_page();
        }
        true
    }

    /// Bytes allocated, an estimate. It counts the first records of each group, but
    /// not the sets of those that have more. O(groups that are held or have
    /// settings).
    pub fn memory_bytes(&self) -> usize {
        const EXTENSION: usize = allocated(size_of::<GroupExtension>());
        const SETTINGS: usize = allocated(size_of::<GroupSettings>());
        const FIRST_RECORDS: usize = 2 * size_of::<OrderKey>();
        let held = self.held_from(0).filter_map(|ix| self.get(ix));
        let holds: usize = held.map(|group| group.ext().holds.memory_bytes()).sum();
        let configured = self.configured.iter().filter_map(|ix| self.get(*ix));
        let configured = configured.map(|group| {
            let (settings, breaker) = (&group.ext().settings, &group.ext().breaker);
            let settings = settings.as_ref();
            settings.map_or(0, |settings| SETTINGS + settings.window.heap_bytes())
                + breaker.as_ref().map_or(0, |breaker| breaker.memory_bytes())
        });
        self.by_name.allocation_size()
            + self.slots.memory_bytes()
            + self.backlog_bytes
            + self.recorded * FIRST_RECORDS
            + self.extended * EXTENSION
            + tree(size_of::<GroupIx>(), self.configured.len())
            + configured.sum::<usize>()
            + self.name_bytes
            + holds
            + self.held.memory_bytes()
            + self.wakes.memory_bytes()
            + self.breaker_times.memory_bytes()
    }
}
