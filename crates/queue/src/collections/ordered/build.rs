//! Building a set from entries that are already sorted.

use super::node::{Node, FULL};
use super::{Key, Measure, OrderedSet};

impl<K: Key, V: Measure> OrderedSet<K, V> {
    /// Builds a set with full leaves from entries in ascending order of distinct
    /// keys, in O(n).
    ///
    /// Entries out of order are accepted at O(log n) each. Of two entries with one
    /// key the later one stays.
    pub fn from_sorted(entries: impl IntoIterator<Item = (K, V)>) -> Self {
        let mut set = Self::new();
        let mut leaf = Vec::new();
        let mut highest: Option<K> = None;
        for entry in entries {
            if highest.is_some_and(|key| key >= entry.0) {
                set.append_leaf(std::mem::take(&mut leaf));
                set.insert(entry.0, entry.1);
                continue;
            }
            highest = Some(entry.0);
            if leaf.len() == FULL {
                set.append_leaf(std::mem::take(&mut leaf));
            }
            set.ledger.reserve(&mut leaf, 1);
            leaf.push(entry);
        }
        set.append_leaf(leaf);
        set
    }

    /// Appends a leaf. Its keys must be above all others.
    fn append_leaf(&mut self, leaf: Vec<(K, V)>) {
        self.len += leaf.len();
        let leaf = Node::Leaf(leaf);
        let Some(head) = leaf.head() else { return };
        if self.root.is_empty() {
            self.root = leaf;
            return;
        }
        if self.root.is_full() || matches!(self.root, Node::Leaf(_)) {
            self.add_level();
        }
        if let Node::Inner(inner) = &mut self.root {
            inner.append_leaf(head, leaf, &mut self.ledger);
        }
    }
}
