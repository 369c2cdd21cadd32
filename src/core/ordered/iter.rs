//! Walking a set in order.

use std::iter::FusedIterator;
use std::ops::Bound;
use std::slice;

use super::node::{rank, Node};
use super::{Key, Measure};

/// The entries of a set in order of their keys.
///
/// It holds no stack of nodes: at the end of a leaf it searches from the root
/// for the lowest key of the next. Spread over the entries of a leaf that
/// costs next to nothing, and starting an iterator allocates nothing.
pub struct Iter<'a, K, V> {
    root: &'a Node<K, V>,
    entries: slice::Iter<'a, (K, V)>,
    next_leaf: Option<K>,
}

impl<'a, K: Key, V: Measure> Iter<'a, K, V> {
    pub(super) fn new(root: &'a Node<K, V>, low: Bound<K>) -> Self {
        let mut iter = Self {
            root,
            entries: [].iter(),
            next_leaf: None,
        };
        match low {
            Bound::Unbounded => iter.next_leaf = root.items().first().map(|item| item.0),
            Bound::Included(key) => iter.start(&key, |other| *other < key),
            Bound::Excluded(key) => iter.start(&key, |other| *other <= key),
        }
        iter
    }

    /// Enters the leaf for `key` behind the keys that are `below` the bound.
    fn start(&mut self, key: &K, below: impl Fn(&K) -> bool) {
        let (leaf, next_leaf) = self.root.leaf_for(key);
        let skip = rank(leaf, below);
        self.entries = leaf.get(skip..).unwrap_or_default().iter();
        self.next_leaf = next_leaf;
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
