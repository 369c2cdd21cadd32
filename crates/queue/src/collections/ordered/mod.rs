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
//! The first leaf is not in the tree but in front of it: what is worked off in order
//! is there at once, and leaves without moving the rest. When it is empty, the tree's
//! first leaf takes its place.
//!
//! There are no parent links and no cursors. Every operation is one walk from
//! the root, and an iterator finds the next leaf by searching for its lowest
//! key.

mod back;
mod build;
mod entry;
mod front;
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
use front::Front;
use inner::Inner;
pub use iter::Iter;
use ledger::Ledger;
use node::Node;

/// A set of distinct keys in order, each with a measure.
///
/// An empty set allocates nothing. Operations are O(log n) unless noted otherwise.
pub struct OrderedSet<K, V = ()> {
    /// The entries with the lowest keys; none only where there are no others.
    front: Front<K, V>,
    /// All others.
    root: Node<K, V>,
    len: usize,
    ledger: Ledger,
}

impl<K: Key, V: Measure> OrderedSet<K, V> {
    /// An empty set. Allocates nothing.
    pub const fn new() -> Self {
        Self {
            front: Front::EMPTY,
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
        let added = if self.front.reaches(&key) {
            self.insert_in_front(entry)
        } else if self.has_rest() || self.front.is_over() {
            self.insert_behind(entry)
        } else {
            self.front.push(entry, &mut self.ledger);
            true
        };
        self.len += usize::from(added);
        added
    }

    /// Inserts an entry before the last one of the front; whether its key is new.
    fn insert_in_front(&mut self, entry: (K, V)) -> bool {
        match self.front.stored(&entry.0) {
            Ok(at) => {
                self.front.set(at, entry.1);
                false
            }
            Err(at) => {
                if self.front.is_full() {
                    if let Some(last) = self.front.pop_last() {
                        self.insert_behind(last);
                    }
                }
                self.front.insert(at, entry, &mut self.ledger);
                true
            }
        }
    }

    /// Inserts an entry behind the front; whether its key is new.
    fn insert_behind(&mut self, entry: (K, V)) -> bool {
        if self.root.append(entry) {
            return true;
        }
        match &mut self.root {
            // What comes behind a full front goes on: the leaf need not move each
            // time it grows.
            Node::Leaf(leaf) if leaf.is_empty() => self.ledger.reserve(leaf, node::FULL),
            _ => {}
        }
        if self.root.is_full() {
            self.add_level();
        }
        self.root.insert(entry, &mut self.ledger).is_none()
    }

    /// Removes a key. Returns its measure, or `None` if the key is not in the set.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        self.take(key).map(|entry| entry.1)
    }

    /// Removes and returns the entry with a key equal to this one. Unlike
    /// [`OrderedSet::remove`] it returns the stored key, which may have more fields
    /// than are compared.
    pub fn take(&mut self, key: &K) -> Option<(K, V)> {
        if self.front.reaches(key) {
            let entry = self.front.take(key)?;
            self.removed_from_front(1);
            return Some(entry);
        }
        if let Some(entry) = self.root.pluck(key) {
            self.len -= 1;
            return Some(entry);
        }
        let entry = self.root.remove(key, &mut self.ledger)?;
        self.root.trim_leaf(&mut self.ledger);
        self.len -= 1;
        self.drop_levels();
        Some(entry)
    }

    /// Removes and returns the entry with the lowest key.
    pub fn pop_first(&mut self) -> Option<(K, V)> {
        let entry = self.front.pop()?;
        self.removed_from_front(1);
        Some(entry)
    }

    /// Drops up to `limit` entries with the lowest keys and returns how many.
    /// O(limit / leaf size + log n).
    ///
    /// Used to free a huge set in slices, and to remove many entries that leave in
    /// order.
    pub fn drain_some(&mut self, limit: usize) -> usize {
        let of_front = self.front.drain(limit);
        let mut of_rest = 0;
        if of_front < limit && self.front.is_empty() {
            of_rest = self.root.drain_front(limit - of_front, &mut self.ledger);
            self.root.trim_leaf(&mut self.ledger);
            self.drop_levels();
        }
        self.removed_from_front(of_front + of_rest);
        of_front + of_rest
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
        let leaf = match self.front.reaches(key) {
            true => self.front.entries(),
            false => self.root.leaf_for(key).0,
        };
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
        self.front.entries().first().copied()
    }

    /// The entry with the highest key.
    pub fn last(&self) -> Option<(K, V)> {
        match self.has_rest() {
            true => self.root.last(),
            false => self.front.entries().last().copied(),
        }
    }

    /// The entry with the lowest key above `key`. `key` need not be in the set.
    pub fn next_after(&self, key: &K) -> Option<(K, V)> {
        self.range_from(Bound::Excluded(*key)).next()
    }

    /// The least measure of all entries. O(1).
    pub fn min_measure(&self) -> Option<V> {
        let of_front = self.front.entries().iter().map(|entry| entry.1);
        of_front.chain(self.root.measure()).min()
    }

    /// The least measure of the entries with keys below `bound`.
    pub fn least_before(&self, bound: &K) -> Option<V> {
        let of_front = self.front.entries().iter();
        let of_front = of_front.take_while(|entry| entry.0.goes_before(bound));
        let of_front = of_front.map(|entry| entry.1);
        of_front.chain(self.root.least_before(bound)).min()
    }

    /// All entries in the order of their keys. O(1) for each entry.
    pub fn iter(&self) -> Iter<'_, K, V> {
        self.range_from(Bound::Unbounded)
    }

    /// The entries from a lower bound on, in the order of their keys. O(log n) to
    /// start, then O(1) for each entry.
    pub fn range_from(&self, low: Bound<K>) -> Iter<'_, K, V> {
        Iter::new(self.front.entries(), &self.root, low)
    }

    /// The entries with keys below `high`, from the highest key down. O(log n) to
    /// start, then O(1) for each entry.
    pub fn back_from(&self, high: K) -> Back<'_, K, V> {
        Back::below(self.front.entries(), &self.root, high)
    }

    /// The entries without those at the front for whose keys `is_before` holds, in
    /// order. It must hold for no key above one for which it does not. O(log n) to
    /// start, then O(1) for each entry.
    pub fn iter_behind(&self, is_before: impl Fn(&K) -> bool) -> Iter<'_, K, V> {
        Iter::behind(self.front.entries(), &self.root, is_before)
    }

    /// Whether there are entries behind the front.
    #[inline]
    fn has_rest(&self) -> bool {
        self.len > self.front.len()
    }

    /// Puts a new root above the present one, so that the present one can be split.
    fn add_level(&mut self) {
        let old = std::mem::replace(&mut self.root, Node::EMPTY);
        self.root = Inner::above(old, &mut self.ledger);
    }

    /// Keeps the count, and the front, of which entries were taken out.
    #[inline]
    fn removed_from_front(&mut self, count: usize) {
        self.len -= count;
        if !self.has_rest() {
            self.front.trim(&mut self.ledger);
        } else if self.front.is_empty() {
            self.refill();
        }
    }

    /// Puts the first leaf of the tree in the place of an empty front.
    fn refill(&mut self) {
        // Its list has nothing left, and goes as a whole.
        self.front.trim(&mut self.ledger);
        self.front = Front::of(self.root.take_first_leaf(&mut self.ledger));
        self.drop_levels();
    }

    /// Drops roots that have only one child.
    fn drop_levels(&mut self) {
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
        let of_front = self.front.entries().iter();
        let in_front = of_front.copied().find(|entry| entry.1 .0 <= limit);
        in_front.or_else(|| self.root.first_at_most(MinTime(limit)))
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
