//! Iteration over a set in the order of its keys.

use std::iter::FusedIterator;
use std::ops::Bound;
use std::slice;

use super::node::Node;
use super::search::rank;
use super::{Key, Measure};

/// The entries of a set in the order of their keys.
///
/// It keeps no stack of nodes. At the end of a leaf it searches from the root for
/// the lowest key of the next leaf, which costs little for each entry, and creating
/// an iterator allocates nothing.
pub struct Iter<'a, K, V> {
    root: &'a Node<K, V>,
    entries: slice::Iter<'a, (K, V)>,
    next_leaf: Option<K>,
}

impl<'a, K: Key, V: Measure> Iter<'a, K, V> {
    pub(super) fn new(root: &'a Node<K, V>, low: Bound<K>) -> Self {
        match low {
            Bound::Unbounded => Self {
                root,
                entries: [].iter(),
                next_leaf: root.items().first().map(|item| item.0),
            },
            Bound::Included(key) => Self::behind(root, |other| *other < key),
            Bound::Excluded(key) => Self::behind(root, |other| *other <= key),
        }
    }

    /// The entries behind the first ones, for whose keys `is_before` holds.
    pub(super) fn behind(root: &'a Node<K, V>, is_before: impl Fn(&K) -> bool) -> Self {
        let (leaf, next_leaf) = root.last_leaf(&is_before);
        let skip = rank(leaf, is_before);
        Self {
            root,
            entries: leaf.get(skip..).unwrap_or_default().iter(),
            next_leaf,
        }
    }
}

impl<K: Key, V: Measure> Iterator for Iter<'_, K, V> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        loop {
            if let Some(entry) = self.entries.next() {
                return Some(*entry);
            }
            let key = self.next_leaf.take()?;
            let (leaf, next_leaf) = self.root.leaf_for(&key);
            self.entries = leaf.iter();
            self.next_leaf = next_leaf;
        }
    }
}

impl<K: Key, V: Measure> FusedIterator for Iter<'_, K, V> {}
