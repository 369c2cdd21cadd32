//! An ordered set of small keys, lean in memory: the index behind every order
//! of the queue.
//!
//! It is a B+tree. Entries live in leaves, inner nodes only guide the search,
//! and each node holds at most 64 items. Three things set it apart from the
//! standard library's tree:
//!
//! * Memory. A full node passes items to a neighbour before it splits, and two
//!   full neighbours split into three; so leaves stay well filled whatever the
//!   order of insertion, and full when keys only grow. A set of a few entries
//!   is one short list. No allocation is larger than one node.
//! * Measure. Each entry may carry a time beside its key, and each inner node
//!   knows the least time below every child. "The first entry, in key order,
//!   whose time has come" is then one walk down the tree.
//! * Freeing in slices. [`OrderedSet::drain_some`] drops a bounded number of
//!   entries, a leaf at a time.
//!
//! There are no parent links and no cursors. Every operation is one walk from
//! the root, and an iterator finds the next leaf by searching for its lowest
//! key.

mod back;
mod build;
mod entry;
mod inner;
mod iter;
mod ledger;
mod node;
mod search;
#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Bound;

pub use back::Back;
pub use entry::{Key, Measure, MinTime};
use inner::Inner;
pub use iter::Iter;
use ledger::Ledger;
use node::Node;

/// A set of distinct keys in order, each with a measure.
///
/// An empty set allocates nothing. Operations are O(log n) unless noted otherwise.
pub struct OrderedSet<K, V = ()> {
    root: Node<K, V>,
    len: usize,
    ledger: Ledger,
}

impl<K: Key, V: Measure> OrderedSet<K, V> {
    /// An empty set. Allocates nothing.
    pub const fn new() -> Self {
        Self {
            root: Node::EMPTY,
            len: 0,
            ledger: Ledger::EMPTY,
        }
    }

    /// The number of entries. O(1).
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the set has no entries. O(1).
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes allocated for entries and tree, without this struct and without
    /// the overhead of the allocator. O(1).
    pub fn memory_bytes(&self) -> usize {
        self.ledger.bytes()
    }

    /// Inserts an entry. Returns false if the key was there already; its measure is
    /// then replaced.
    pub fn insert(&mut self, key: K, value: V) -> bool {
        let entry = (key, value);
        let added = self.root.append(entry) || {
            if self.root.is_full() {
                self.add_level();
            }
            self.root.insert(entry, &mut self.ledger).is_none()
        };
        self.len += usize::from(added);
        added
    }

    /// Removes a key. Returns its measure, or `None` if the key is not in the set.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        self.take(key).map(|entry| entry.1)
    }

    /// Removes and returns the entry with a key equal to this one. Unlike
    /// [`OrderedSet::remove`] it returns the stored key, which may have more fields
    /// than are compared.
    pub fn take(&mut self, key: &K) -> Option<(K, V)> {
        if let Some(entry) = self.root.pluck(key) {
            self.len -= 1;
            return Some(entry);
        }
        let entry = self.root.remove(key, &mut self.ledger)?;
        self.root.trim_leaf(&mut self.ledger);
        self.removed(1);
        Some(entry)
    }

    /// Removes and returns the entry with the lowest key.
    pub fn pop_first(&mut self) -> Option<(K, V)> {
        let entry = self.root.pop_first(&mut self.ledger)?;
        self.root.trim_leaf(&mut self.ledger);
        self.removed(1);
        Some(entry)
    }

    /// Drops up to `limit` entries with the lowest keys and returns how many.
    /// O(limit / leaf size + log n).
    ///
    /// Used to free a huge set in slices, and to remove many entries that leave in
    /// order.
    pub fn drain_some(&mut self, limit: usize) -> usize {
        let count = self.root.drain_front(limit, &mut self.ledger);
        self.root.trim_leaf(&mut self.ledger);
        self.removed(count);
        count
    }

    /// If there are more than `limit` entries, drops up to `limit` of them with the
    /// lowest keys. Returns whether it did. Used to free many sets in slices, most
    /// of which are small and freed at once.
    pub fn drain_many(&mut self, limit: usize) -> bool {
        self.len > limit && self.drain_some(limit) > 0
    }

    /// Removes up to `limit` entries with the lowest keys and returns them as a
    /// set. O(limit), about ten nanoseconds each.
    pub fn take_first(&mut self, limit: usize) -> Self {
        let taken = Self::from_sorted(self.iter().take(limit));
        self.drain_some(taken.len());
        taken
    }

    /// Drops all entries and frees all memory. O(n).
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    /// The entry with a key equal to this one.
    pub fn find(&self, key: &K) -> Option<(K, V)> {
        let (leaf, _) = self.root.leaf_for(key);
        let at = search::find(leaf, key)?;
        leaf.get(at).copied()
    }

    /// The measure of a key, or `None` if the key is not in the set.
    pub fn get(&self, key: &K) -> Option<V> {
        self.find(key).map(|entry| entry.1)
    }

    /// Whether the key is in the set.
    pub fn contains(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    /// The entry with the lowest key. O(1).
    pub fn first(&self) -> Option<(K, V)> {
        self.root.first()
    }

    /// The entry with the highest key.
    pub fn last(&self) -> Option<(K, V)> {
        self.root.last()
    }

    /// The entry with the lowest key above `key`. `key` need not be in the set.
    pub fn next_after(&self, key: &K) -> Option<(K, V)> {
        self.range_from(Bound::Excluded(*key)).next()
    }

    /// The least measure of all entries. O(1).
    pub fn min_measure(&self) -> Option<V> {
        self.root.measure()
    }

    /// The least measure of the entries with keys below `bound`.
    pub fn least_before(&self, bound: &K) -> Option<V> {
        self.root.least_before(bound)
    }

    /// All entries in the order of their keys. O(1) for each entry.
    pub fn iter(&self) -> Iter<'_, K, V> {
        self.range_from(Bound::Unbounded)
    }

    /// The entries from a lower bound on, in the order of their keys. O(log n) to
    /// start, then O(1) for each entry.
    pub fn range_from(&self, low: Bound<K>) -> Iter<'_, K, V> {
        Iter::new(&self.root, low)
    }

    /// The entries with keys below `high`, from the highest key down. O(log n) to
    /// start, then O(1) for each entry.
    pub fn back_from(&self, high: K) -> Back<'_, K, V> {
        Back::below(&self.root, high)
    }

    /// The entries without those at the front for whose keys `is_before` holds, in
    /// order. It must hold for no key above one for which it does not. O(log n) to
    /// start, then O(1) for each entry.
    pub fn iter_behind(&self, is_before: impl Fn(&K) -> bool) -> Iter<'_, K, V> {
        Iter::behind(&self.root, is_before)
    }

    /// Puts a new root above the present one, so that the present one can be split.
    fn add_level(&mut self) {
        let old = std::mem::replace(&mut self.root, Node::EMPTY);
        self.root = Inner::above(old, &mut self.ledger);
    }

    /// Keeps the count, and drops each root that has only one child left.
    fn removed(&mut self, count: usize) {
        self.len -= count;
        while let Node::Inner(inner) = &mut self.root {
            let Some(only) = inner.take_only_child(&mut self.ledger) else {
                break;
            };
            self.root = only;
        }
    }
}

impl<K: Key> OrderedSet<K, MinTime> {
    /// The first entry in key order whose time is at most `limit`
    /// (milliseconds).
    pub fn first_at_most(&self, limit: u64) -> Option<(K, MinTime)> {
        self.root.first_at_most(MinTime(limit))
    }
}

impl<K: Key, V: Measure> Default for OrderedSet<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Key, V: Measure> Clone for OrderedSet<K, V> {
    /// Copies the entries into full leaves. O(n).
    fn clone(&self) -> Self {
        Self::from_sorted(self)
    }
}

impl<K: Key + fmt::Debug, V: Measure + fmt::Debug> fmt::Debug for OrderedSet<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

impl<'a, K: Key, V: Measure> IntoIterator for &'a OrderedSet<K, V> {
    type Item = (K, V);
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
