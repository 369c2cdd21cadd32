//! The nodes of the tree.
//!
//! Invariants between two operations:
//! * All leaves are at the same depth, and no node is empty, except for the root of
//!   an empty tree.
//! * The heads of an inner node are in order. The key of a head is above all keys
//!   of the children before it, and not above any key of its own child. Its measure
//!   is exactly the least one of its child.
//!
//! An insertion makes sure that a child has room before it descends into it, and a
//! removal restores the invariants on its way back. So either takes one walk.

use super::inner::{is_to_be_tidied, Inner};
use super::ledger::Ledger;
use super::search::{find, rank};
use super::{Key, Measure};

/// Maximum number of items in a node. With entries of sixteen bytes a full leaf
/// takes one KiB.
pub(super) const FULL: usize = 64;

pub(super) enum Node<K, V> {
    /// Entries in the order of their keys.
    Leaf(Vec<(K, V)>),
    Inner(Box<Inner<K, V>>),
}

impl<K, V> Node<K, V> {
    pub(super) const EMPTY: Self = Node::Leaf(Vec::new());
}

impl<K: Key, V: Measure> Node<K, V> {
    /// The entries of a leaf, or the heads of an inner node.
    pub(super) fn items(&self) -> &[(K, V)] {
        match self {
            Node::Leaf(entries) => entries,
            Node::Inner(inner) => &inner.heads,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.items().len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.items().is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.len() >= FULL
    }

    pub(super) fn measure(&self) -> Option<V> {
        self.items().iter().map(|item| item.1).min()
    }

    pub(super) fn head(&self) -> Option<(K, V)> {
        Some((self.items().first()?.0, self.measure()?))
    }

    pub(super) fn first(&self) -> Option<(K, V)> {
        let mut node = self;
        while let Node::Inner(inner) = node {
            node = inner.children.first()?;
        }
        node.items().first().copied()
    }

    pub(super) fn last(&self) -> Option<(K, V)> {
        let mut node = self;
        while let Node::Inner(inner) = node {
            node = inner.children.last()?;
        }
        node.items().last().copied()
    }

    pub(super) fn first_at_most(&self, limit: V) -> Option<(K, V)> {
        let mut node = self;
        loop {
            let at = node.items().iter().position(|item| item.1 <= limit)?;
            match node {
                Node::Leaf(entries) => return entries.get(at).copied(),
                Node::Inner(inner) => node = inner.children.get(at)?,
            }
        }
    }

    pub(super) fn least_before(&self, bound: &K) -> Option<V> {
        let mut node = self;
        let mut least: Option<V> = None;
        loop {
            // In an inner node only the last child in question can have keys on
            // both sides of the bound.
            let (whole, child) = match node {
                Node::Leaf(entries) => (rank(entries, |key| key.goes_before(bound)), None),
                Node::Inner(inner) => {
                    let at = inner.position(bound);
                    (at, inner.children.get(at))
                }
            };
            let below = node.items().iter().take(whole).map(|item| item.1).min();
            least = match (least, below) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
            match child {
                Some(child) => node = child,
                None => return least,
            }
        }
    }

    /// The only leaf that may hold `key`, and a key that leads to the next leaf, if
    /// there is one.
    pub(super) fn leaf_for(&self, key: &K) -> (&[(K, V)], Option<K>) {
        self.last_leaf(|low| !key.goes_before(low))
    }

    /// The last leaf that may hold keys for which `is_in_front` holds, and a key
    /// that leads to the next leaf, if there is one.
    pub(super) fn last_leaf(&self, is_in_front: impl Fn(&K) -> bool) -> (&[(K, V)], Option<K>) {
        let mut node = self;
        let mut next_leaf = None;
        loop {
            match node {
                Node::Leaf(entries) => return (entries, next_leaf),
                Node::Inner(inner) => {
                    let at = inner.last_child(&is_in_front);
                    let Some(child) = inner.children.get(at) else {
                        return (&[], None);
                    };
                    node = child;
                    next_leaf = inner.heads.get(at + 1).map(|head| head.0).or(next_leaf);
                }
            }
        }
    }

    /// The entries below `key` of the last leaf that may hold any, and a lower bound
    /// of that leaf's keys; `None` if no leaf is before it.
    pub(super) fn leaf_before(&self, key: &K) -> (&[(K, V)], Option<K>) {
        let mut node = self;
        let mut low = None;
        loop {
            let before = rank(node.items(), |other| other.goes_before(key));
            match node {
                Node::Leaf(entries) => return (entries.get(..before).unwrap_or_default(), low),
                Node::Inner(inner) => {
                    let at = before.saturating_sub(1);
                    if before > 0 {
                        low = inner.heads.get(at).map(|head| head.0);
                    }
                    match inner.children.get(at) {
                        Some(child) => node = child,
                        None => return (&[], None),
                    }
                }
            }
        }
    }

    /// Appends an entry if its key is above all others and the last leaf has room.
    /// Returns whether it did. This is the usual case of keys that only grow, and
    /// no length but that of the leaf changes.
    #[inline]
    pub(super) fn append(&mut self, entry: (K, V)) -> bool {
        let mut node = &mut *self;
        while let Node::Inner(inner) = node {
            match inner.children.last_mut() {
                Some(last) => node = last,
                None => return false,
            }
        }
        let Node::Leaf(entries) = node else {
            return false;
        };
        let room = entries.capacity().min(FULL);
        if entries.len() >= room || entries.last().is_none_or(|last| last.0 >= entry.0) {
            return false;
        }
        entries.push(entry);
        if has_measure::<V>() {
            self.lower_last(entry.1);
        }
        true
    }

    /// Lowers the measure in the last head of every level to `value`, if it is
    /// above.
    fn lower_last(&mut self, value: V) {
        let mut node = self;
        while let Node::Inner(inner) = node {
            let (heads, children) = (&mut inner.heads, &mut inner.children);
            let (Some(head), Some(last)) = (heads.last_mut(), children.last_mut()) else {
                return;
            };
            head.1 = head.1.min(value);
            node = last;
        }
    }

    /// Inserts into a node that is not full. Returns the measure it replaces,
    /// if the key was there.
    pub(super) fn insert(&mut self, entry: (K, V), ledger: &mut Ledger) -> Option<V> {
        match self {
            Node::Leaf(entries) => {
                let at = rank(entries, |other| other.goes_before(&entry.0));
                match entries.get_mut(at) {
                    Some(known) if known.0 == entry.0 => {
                        Some(std::mem::replace(&mut known.1, entry.1))
                    }
                    _ => {
                        ledger.reserve(entries, 1);
                        entries.insert(at, entry);
                        None
                    }
                }
            }
            Node::Inner(inner) => inner.insert(entry, ledger),
        }
    }

    /// Removes and returns the entry with this key. The node may be left empty; the
    /// caller trims a leaf.
    pub(super) fn remove(&mut self, key: &K, ledger: &mut Ledger) -> Option<(K, V)> {
        match self {
            Node::Leaf(entries) => {
                let at = find(entries, key)?;
                Some(entries.remove(at))
            }
            Node::Inner(inner) => {
                let at = inner.position(key);
                let entry = inner.children.get_mut(at)?.remove(key, ledger)?;
                inner.removed_from(at, entry.1, ledger);
                Some(entry)
            }
        }
    }

    /// Removes and returns an entry if only the length of its leaf changes, which
    /// is so for most entries. Returns `None` if the key is not there or
    /// [`Node::remove`] must restore invariants; always if entries have a measure.
    #[inline]
    pub(super) fn pluck(&mut self, key: &K) -> Option<(K, V)> {
        if has_measure::<V>() {
            return None;
        }
        let Node::Inner(root) = self else {
            // A root that is a leaf is trimmed as it shrinks.
            return None;
        };
        let at = root.position(key);
        let mut node = root.children.get_mut(at)?;
        while let Node::Inner(inner) = node {
            let at = inner.position(key);
            node = inner.children.get_mut(at)?;
        }
        match node {
            Node::Leaf(entries) if !is_to_be_tidied(entries.len().saturating_sub(1)) => {
                let at = find(entries, key)?;
                Some(entries.remove(at))
            }
            _ => None,
        }
    }

    /// Removes and returns the entry with this key. The node may be left empty; the
    /// caller trims a leaf.
    pub(super) fn pop_first(&mut self, ledger: &mut Ledger) -> Option<(K, V)> {
        match self {
            Node::Leaf(entries) => (!entries.is_empty()).then(|| entries.remove(0)),
            Node::Inner(inner) => {
                let entry = inner.children.first_mut()?.pop_first(ledger)?;
                inner.removed_from(0, entry.1, ledger);
                Some(entry)
            }
        }
    }

    /// Drops up to `limit` entries from the front and returns how many. The node
    /// may be left empty.
    pub(super) fn drain_front(&mut self, limit: usize, ledger: &mut Ledger) -> usize {
        match self {
            Node::Leaf(entries) => {
                let count = limit.min(entries.len());
                entries.drain(..count);
                // A leaf that still has entries will be gone soon. Trimming it at
                // every step would copy its entries half a dozen times before.
                if entries.is_empty() {
                    ledger.trim(entries);
                }
                count
            }
            Node::Inner(inner) => inner.drain_front(limit, ledger),
        }
    }

    /// Counts this node as freed. It must be empty, so that it has no lists.
    pub(super) fn forget(&self, ledger: &mut Ledger) {
        if let Node::Inner(_) = self {
            ledger.drop_box::<Inner<K, V>>();
        }
    }

    /// Shrinks a leaf if less than half of its capacity is used.
    pub(super) fn trim_leaf(&mut self, ledger: &mut Ledger) {
        if let Node::Leaf(entries) = self {
            ledger.trim(entries);
        }
    }

    /// Frees memory that the next few insertions will not need.
    pub(super) fn fit(&mut self, ledger: &mut Ledger) {
        match self {
            Node::Leaf(entries) => ledger.fit(entries),
            Node::Inner(inner) => {
                ledger.fit(&mut inner.heads);
                ledger.fit(&mut inner.children);
            }
        }
    }

    /// Moves the items from `at` on to a new node of the same kind.
    pub(super) fn split_off(&mut self, at: usize, ledger: &mut Ledger) -> Self {
        let count = self.len().saturating_sub(at);
        let mut tail = match self {
            Node::Leaf(_) => Node::EMPTY,
            Node::Inner(_) => Inner::empty(ledger),
        };
        tail.take_back(self, count, ledger);
        tail
    }

    /// Moves the first `count` items of the next node to the end of this one.
    pub(super) fn take_front(&mut self, next: &mut Self, count: usize, ledger: &mut Ledger) {
        match (self, next) {
            (Node::Leaf(left), Node::Leaf(right)) => shift_left(left, right, count, ledger),
            (Node::Inner(left), Node::Inner(right)) => {
                shift_left(&mut left.heads, &mut right.heads, count, ledger);
                shift_left(&mut left.children, &mut right.children, count, ledger);
            }
            // Neighbours are of the same kind, since all leaves are at the same
            // depth.
            _ => {}
        }
    }

    /// Moves the last `count` items of the previous node to the front of this one.
    pub(super) fn take_back(&mut self, previous: &mut Self, count: usize, ledger: &mut Ledger) {
        match (previous, self) {
            (Node::Leaf(left), Node::Leaf(right)) => shift_right(left, right, count, ledger),
            (Node::Inner(left), Node::Inner(right)) => {
                shift_right(&mut left.heads, &mut right.heads, count, ledger);
                shift_right(&mut left.children, &mut right.children, count, ledger);
            }
            // Neighbours are of the same kind, since all leaves are at the same
            // depth.
            _ => {}
        }
    }
}

/// Whether entries have a measure, so that heads must be updated when it changes.
const fn has_measure<V>() -> bool {
    size_of::<V>() > 0
}

/// Moves the first `count` items of `right` to the end of `left`.
fn shift_left<T>(left: &mut Vec<T>, right: &mut Vec<T>, count: usize, ledger: &mut Ledger) {
    let count = count.min(right.len());
    ledger.reserve(left, count);
    left.extend(right.drain(..count));
    ledger.trim(right);
}

/// Moves the last `count` items of `left` to the front of `right`.
fn shift_right<T>(left: &mut Vec<T>, right: &mut Vec<T>, count: usize, ledger: &mut Ledger) {
    let from = left.len().saturating_sub(count);
    ledger.reserve(right, left.len() - from);
    right.splice(..0, left.drain(from..));
    ledger.trim(left);
}
