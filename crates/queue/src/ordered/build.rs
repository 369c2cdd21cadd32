//! Building a set whose entries are known in order.

use super::front::Front;
use super::node::{Node, FULL};
use super::{Key, Measure, OrderedSet};

impl<K: Key, V: Measure> OrderedSet<K, V> {
    /// Builds a set from entries in ascending order of distinct keys, with
    /// full leaves, in O(n).
    ///
    /// An entry out of order is inserted at its place, and the later of two
    /// entries with one key stays; such entries cost O(log n) each.
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

    /// Puts a leaf whose keys are above all others behind the last one.
    fn append_leaf(&mut self, leaf: Vec<(K, V)>) {
        self.len += leaf.len();
        if self.front.is_empty() {
            self.front = Front::of(leaf);
            return;
        }
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
