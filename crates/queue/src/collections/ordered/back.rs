//! Iteration from the end of the set.

use std::iter::FusedIterator;
use std::slice;

use super::node::Node;
use super::{Key, Measure};

/// The entries of a set below a key, from the highest key down.
///
/// Like [`Iter`](super::Iter) it keeps no stack of nodes: at the front of a leaf it
/// searches from the root for the leaf before it.
pub struct Back<'a, K, V> {
    root: &'a Node<K, V>,
    entries: slice::Iter<'a, (K, V)>,
    /// The next leaf is the last one that may hold keys below this one. `None` where
    /// no leaf is left.
    below: Option<K>,
}

impl<'a, K: Key, V: Measure> Back<'a, K, V> {
    pub(super) fn below(root: &'a Node<K, V>, high: K) -> Self {
        Self {
            root,
            entries: [].iter(),
            below: Some(high),
        }
    }
}

impl<K: Key, V: Measure> Iterator for Back<'_, K, V> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        loop {
            if let Some(entry) = self.entries.next_back() {
                return Some(*entry);
            }
            let key = self.below.take()?;
            let (entries, low) = self.root.leaf_before(&key);
            self.entries = entries.iter();
            self.below = low;
        }
    }
}

impl<K: Key, V: Measure> FusedIterator for Back<'_, K, V> {}
