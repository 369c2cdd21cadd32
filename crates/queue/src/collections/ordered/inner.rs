//! Inner nodes of the tree: how they insert and remove, and how their children pass
//! items to each other, split and join.

use super::ledger::Ledger;
use super::node::{Node, FULL};
use super::search::rank;
use super::{Key, Measure};

/// A full child passes items to a neighbour that has room for at least this many.
/// With less room the neighbour would soon be full again.
const WORTH_SHIFTING: usize = FULL / 8;

// Half of the room is filled, rounded up, and the new entry may need a slot in
// either of the two.
const _: () = assert!(WORTH_SHIFTING >= 2);

/// Two neighbours are joined if they have at most this many items together, so that
/// the result has room to grow.
const WORTH_JOINING: usize = FULL - FULL / 8;

/// Whether a child that has shrunk to this length is trimmed and joined with a
/// neighbour, or dropped. This is done at every eighth length only: a child that
/// goes on shrinking reaches the next one soon.
#[inline]
pub(super) fn is_to_be_tidied(len: usize) -> bool {
    len <= FULL / 2 && len.is_multiple_of(FULL / 8)
}

/// Children in the order of their keys, each with a head: a lower bound of its
/// keys, and its least measure.
pub(super) struct Inner<K, V> {
    pub(super) heads: Vec<(K, V)>,
    pub(super) children: Vec<Node<K, V>>,
}

impl<K: Key, V: Measure> Inner<K, V> {
    pub(super) fn empty(ledger: &mut Ledger) -> Node<K, V> {
        ledger.add_box::<Self>();
        Node::Inner(Box::new(Self {
            heads: Vec::new(),
            children: Vec::new(),
        }))
    }

    /// A node whose only child is `child`; an empty node if `child` is empty.
    pub(super) fn above(child: Node<K, V>, ledger: &mut Ledger) -> Node<K, V> {
        let mut node = Self::empty(ledger);
        if let (Node::Inner(inner), Some(head)) = (&mut node, child.head()) {
            inner.add_child(0, head, child, ledger);
        }
        node
    }

    /// The index of the child that may hold `key`.
    #[inline]
    pub(super) fn position(&self, key: &K) -> usize {
        self.last_child(|low| !key.goes_before(low))
    }

    /// The index of the last child that may hold keys for which `is_in_front`
    /// holds. It must hold for no key above one for which it does not.
    #[inline]
    pub(super) fn last_child(&self, is_in_front: impl Fn(&K) -> bool) -> usize {
        rank(&self.heads, is_in_front).saturating_sub(1)
    }

    /// Inserts an entry into a node that is not full. Returns the measure that was
    /// replaced if the key was there.
    pub(super) fn insert(&mut self, entry: (K, V), ledger: &mut Ledger) -> Option<V> {
        let mut at = self.position(&entry.0);
        if self.children.get(at)?.is_full() {
            self.make_room(at, entry, ledger);
            at = self.position(&entry.0);
        }
        let head = self.heads.get_mut(at)?;
        let child = self.children.get_mut(at)?;
        let replaced = child.insert(entry, ledger);
        head.0 = head.0.min(entry.0);
        head.1 = if replaced == Some(head.1) {
            child.measure()?
        } else {
            head.1.min(entry.1)
        };
        replaced
    }

    /// Appends a leaf to a node that is not full. The head's key must be above all
    /// others.
    pub(super) fn append_leaf(&mut self, head: (K, V), leaf: Node<K, V>, ledger: &mut Ledger) {
        let end = self.children.len();
        if matches!(self.children.last(), Some(Node::Inner(last)) if last.children.len() >= FULL) {
            self.make_room(end.saturating_sub(1), head, ledger);
        }
        match (self.heads.last_mut(), self.children.last_mut()) {
            (Some(last_head), Some(Node::Inner(last))) => {
                last.append_leaf(head, leaf, ledger);
                last_head.1 = last_head.1.min(head.1);
            }
            _ => self.add_child(end, head, leaf, ledger),
        }
    }

    /// Restores the invariants after an entry with the measure `value` was removed
    /// from the child at `at`.
    pub(super) fn removed_from(&mut self, at: usize, value: V, ledger: &mut Ledger) {
        let (Some(head), Some(child)) = (self.heads.get_mut(at), self.children.get_mut(at)) else {
            return;
        };
        if child.is_empty() {
            child.trim_leaf(ledger);
            self.drop_child(at, ledger);
            return;
        }
        if value == head.1 {
            head.1 = child.measure().unwrap_or(value);
        }
        if is_to_be_tidied(child.len()) {
            // The first leaf usually becomes empty soon. If it were trimmed meanwhile,
            // its entries would move several times for nothing.
            if at > 0 {
                child.trim_leaf(ledger);
            }
            self.join_if_small(at, ledger);
        }
    }

    /// Drops up to `limit` entries from the front and returns how many. The node
    /// may be left empty.
    pub(super) fn drain_front(&mut self, limit: usize, ledger: &mut Ledger) -> usize {
        let mut count = 0;
        let mut emptied = 0;
        for child in &mut self.children {
            count += child.drain_front(limit - count, ledger);
            if !child.is_empty() {
                break;
            }
            child.forget(ledger);
            emptied += 1;
        }
        self.heads.drain(..emptied);
        self.children.drain(..emptied);
        ledger.trim(&mut self.heads);
        ledger.trim(&mut self.children);
        self.refresh_measure(0);
        self.join_if_small(0, ledger);
        count
    }

    /// Removes and returns the child of a node that has only one.
    pub(super) fn take_only_child(&mut self, ledger: &mut Ledger) -> Option<Node<K, V>> {
        if self.children.len() > 1 {
            return None;
        }
        let child = self.children.pop().unwrap_or(Node::EMPTY);
        self.heads.clear();
        ledger.trim(&mut self.heads);
        ledger.trim(&mut self.children);
        ledger.drop_box::<Self>();
        Some(child)
    }

    /// Makes room for `entry` in or beside the full child at `at`. This may change
    /// the indexes of children.
    fn make_room(&mut self, at: usize, entry: (K, V), ledger: &mut Ledger) {
        let before = at.checked_sub(1).map_or(0, |before| self.room(before));
        let after = self.room(at + 1);
        if self.is_end(at, &entry.0) {
            self.extend(at, entry, ledger);
        } else if before.max(after) < WORTH_SHIFTING {
            self.split(at, ledger);
        } else if before >= after {
            self.shift_between(at.saturating_sub(1), |left, right| {
                left.take_front(right, before.div_ceil(2), ledger);
            });
        } else {
            self.shift_between(at, |left, right| {
                right.take_back(left, after.div_ceil(2), ledger);
            });
        }
    }

    /// How many more items the child at `at` can take; 0 if there is no such child.
    fn room(&self, at: usize) -> usize {
        let child = self.children.get(at);
        child.map_or(0, |child| FULL.saturating_sub(child.len()))
    }

    /// Whether the child at `at` is the last one and `key` is above all of its
    /// keys.
    fn is_end(&self, at: usize, key: &K) -> bool {
        let last = self.children.last().and_then(|child| child.items().last());
        at + 1 == self.children.len() && last.is_some_and(|item| item.0 < *key)
    }

    /// Adds a child behind the full one at `at` and leaves that one full. Keys that
    /// only grow, such as those of a log, would never fill a half that a split
    /// leaves.
    fn extend(&mut self, at: usize, entry: (K, V), ledger: &mut Ledger) {
        let Some(child) = self.children.get_mut(at) else {
            return;
        };
        let keep = match child {
            Node::Leaf(_) => FULL,
            // The last grandchild moves to the new node, because an inner node must
            // have at least one child.
            Node::Inner(_) => FULL - 1,
        };
        let mut tail = child.split_off(keep, ledger);
        if let Node::Leaf(entries) = &mut tail {
            // The leaf will be full soon: allocate it once.
            ledger.reserve(entries, FULL);
        }
        let head = tail.head().unwrap_or(entry);
        self.refresh_measure(at);
        self.add_child(at + 1, head, tail, ledger);
    }

    /// Splits the full child at `at` and a neighbour into three, or an only child
    /// into two.
    fn split(&mut self, at: usize, ledger: &mut Ledger) {
        let first = at.min(self.children.len().saturating_sub(2));
        let middle = match self.children.get_mut(first..) {
            Some([left, right, ..]) => {
                let third = (left.len() + right.len()) / 3;
                let mut middle = left.split_off(third, ledger);
                middle.take_front(right, third.saturating_sub(middle.len()), ledger);
                left.fit(ledger);
                right.fit(ledger);
                middle
            }
            Some([only]) => {
                let back = only.split_off(FULL / 2, ledger);
                only.fit(ledger);
                back
            }
            _ => return,
        };
        if let Some(head) = middle.head() {
            self.add_child(first + 1, head, middle, ledger);
        }
        self.refresh_measure(first);
        self.refresh_head(first + 2);
    }

    /// Lets the neighbours at `first` and `first + 1` pass items to each other, and
    /// updates their heads.
    fn shift_between(
        &mut self,
        first: usize,
        shift: impl FnOnce(&mut Node<K, V>, &mut Node<K, V>),
    ) {
        if let Some([left, right, ..]) = self.children.get_mut(first..) {
            shift(left, right);
        }
        self.refresh_measure(first);
        self.refresh_head(first + 1);
    }

    /// Joins the child at `at` with a neighbour if it is at most half full and the
    /// two have room to grow together.
    fn join_if_small(&mut self, at: usize, ledger: &mut Ledger) {
        let used = FULL - self.room(at);
        if used > FULL / 2 {
            return;
        }
        let fits = |neighbour: usize| FULL - self.room(neighbour) + used <= WORTH_JOINING;
        let first = match at.checked_sub(1) {
            Some(before) if fits(before) => before,
            _ if fits(at + 1) => at,
            _ => return,
        };
        self.shift_between(first, |left, right| {
            left.take_front(right, right.len(), ledger);
        });
        self.drop_child(first + 1, ledger);
    }

    /// Updates the measure in a head, but not its key. That is still a lower bound.
    /// If it were raised, an entry on its way to this child could end up in the one
    /// before, which may be full.
    fn refresh_measure(&mut self, at: usize) {
        let measure = self.children.get(at).and_then(Node::measure);
        if let (Some(head), Some(measure)) = (self.heads.get_mut(at), measure) {
            head.1 = measure;
        }
    }

    /// Updates the head of a child whose first items have changed.
    fn refresh_head(&mut self, at: usize) {
        let head = self.children.get(at).and_then(Node::head);
        if let (Some(old), Some(new)) = (self.heads.get_mut(at), head) {
            *old = new;
        }
    }

    fn add_child(&mut self, at: usize, head: (K, V), child: Node<K, V>, ledger: &mut Ledger) {
        ledger.reserve(&mut self.heads, 1);
        ledger.reserve(&mut self.children, 1);
        self.heads.insert(at, head);
        self.children.insert(at, child);
    }

    /// Removes an empty child.
    fn drop_child(&mut self, at: usize, ledger: &mut Ledger) {
        self.heads.remove(at);
        self.children.remove(at).forget(ledger);
        ledger.trim(&mut self.heads);
        ledger.trim(&mut self.children);
    }
}
