//! Content that a queue has given up as a whole and that is still to be freed.
//!
//! It is freed in slices. No client can see how much of it is left, so it is not
//! replicated: each server frees it at its own pace.

use std::fmt;

use crate::collections::ordered::{Key, Measure, OrderedSet};
use crate::collections::rare::{unused, Rare};
use crate::groups::Groups;
use crate::index::batches::Batches;
use crate::index::dedup_ids::DedupIds;
use crate::index::leases::Series;
use crate::index::records::DedupMemory;
use crate::index::siblings::AllSiblings;
use crate::message::store::Store;
use crate::queue::Queue;

/// Number of entries of an index that are freed in one step. They lie in some 16 allocations.
const ENTRIES: usize = 1024;
/// Number of groups that are freed in one step.
const GROUPS: usize = 32;
/// Number of entries of named batches that are freed in one step. Many are allocations of their
/// own.
const OF_BATCHES: usize = 32;
/// Number of remembered ids that are freed in one step. Each is an allocation of its own.
const IDS: usize = 64;

/// A structure that can be freed in steps.
trait Free {
    /// Frees a small part. Returns its cost, in messages freed; 0 if nothing is left.
    fn free_some(&mut self) -> usize;
}

impl Free for Store {
    fn free_some(&mut self) -> usize {
        if self.drop_page() {
            128
        } else {
            0
        }
    }
}

impl Free for Groups {
    fn free_some(&mut self) -> usize {
        if self.drop_some(GROUPS) {
            GROUPS
        } else {
            0
        }
    }
}

impl<K: Key, V: Measure> Free for OrderedSet<K, V> {
    fn free_some(&mut self) -> usize {
        self.drain_some(ENTRIES).min(64)
    }
}

impl Free for Series {
    fn free_some(&mut self) -> usize {
        self.drain_some(ENTRIES).min(64)
    }
}

impl Free for Batches {
    fn free_some(&mut self) -> usize {
        self.drain_some(OF_BATCHES)
    }
}

impl Free for AllSiblings {
    fn free_some(&mut self) -> usize {
        self.drain_some(OF_BATCHES)
    }
}

impl Free for DedupIds {
    fn free_some(&mut self) -> usize {
        self.drain_some(IDS)
    }
}

impl Free for DedupMemory {
    fn free_some(&mut self) -> usize {
        self.drain_some(IDS)
    }
}

/// All parts that are to be freed. The last is freed first.
#[derive(Default)]
pub struct Garbage(Vec<Box<dyn Free + Send + Sync>>);

unused!(Garbage = Garbage(Vec::new()));

impl Garbage {
    fn push(&mut self, content: impl Free + Send + Sync + 'static) {
        self.0.push(Box::new(content));
    }
}

impl Clone for Garbage {
    /// A copy of a queue has none of its garbage.
    fn clone(&self) -> Garbage {
        Garbage::default()
    }
}

impl fmt::Debug for Garbage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Garbage").field(&self.0.len()).finish()
    }
}

impl Queue {
    /// Marks messages and all indexes of them to be freed.
    pub(in crate::queue) fn discard_content(&mut self, store: Rare<Store>, groups: Rare<Groups>) {
        let garbage = &mut self.notes.garbage.0;
        garbage.extend(
            groups
                .into_box()
                .map(|groups| groups as Box<dyn Free + Send + Sync>),
        );
        garbage.extend(
            store
                .into_box()
                .map(|store| store as Box<dyn Free + Send + Sync>),
        );
    }

    /// An index is to be freed.
    pub(in crate::queue) fn discard_index<K, V>(&mut self, index: OrderedSet<K, V>)
    where
        K: Key + Send + Sync + 'static,
        V: Measure + Send + Sync + 'static,
    {
        if !index.is_empty() {
            self.notes.garbage.push(index);
        }
    }

    /// Marks leases in the order of their receipts to be freed.
    pub(in crate::queue) fn discard_series(&mut self, leases: Series) {
        if leases.len() > 0 {
            self.notes.garbage.push(leases);
        }
    }

    /// Marks named batches with all their messages to be freed.
    pub(in crate::queue) fn discard_batches(&mut self, batches: Batches) {
        self.notes.garbage.push(batches);
    }

    /// Sets of siblings are to be freed.
    pub(in crate::queue) fn discard_siblings(&mut self, siblings: AllSiblings) {
        self.notes.garbage.push(siblings);
    }

    /// Remembered ids are to be freed.
    pub(in crate::queue) fn discard_ids(&mut self, ids: DedupMemory) {
        if ids.oldest().is_some() {
            self.notes.garbage.push(ids);
        }
    }

    /// Deduplication ids are to be freed.
    pub(in crate::queue) fn discard_dedup_ids(&mut self, ids: DedupIds) {
        self.notes.garbage.push(ids);
    }

    /// Frees garbage of about `most` messages. Returns whether more is left.
    pub fn free_garbage(&mut self, most: usize) -> bool {
        let Some(Garbage(all)) = self.notes.garbage.used_mut() else {
            return false;
        };
        let mut left = most;
        while left > 0 {
            let Some(last) = all.last_mut() else {
                return false;
            };
            match last.free_some() {
                0 => drop(all.pop()),
                cost => left = left.saturating_sub(cost),
            }
        }
        self.has_garbage()
    }

    /// Whether [`Queue::free_garbage`] has work.
    pub fn has_garbage(&self) -> bool {
        !self.notes.garbage.0.is_empty()
    }
}
