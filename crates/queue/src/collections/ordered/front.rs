//! The entries with the lowest keys, which lie before the tree.

use super::ledger::Ledger;
use super::node::FULL;
use super::search::{find, rank};
use super::{Key, Measure};

/// The lowest entries of a set, at most a leaf of them.
///
/// What is worked off in order is looked at and leaves here: without a walk down the
/// tree, and without moving the others. The room that it leaves is taken back when the
/// list is full, or mostly unused.
pub(super) struct Front<K, V> {
    /// In order of their keys.
    list: Vec<(K, V)>,
    /// So many at the front of the list have gone.
    gone: usize,
}

impl<K, V> Front<K, V> {
    pub(super) const EMPTY: Self = Front {
        list: Vec::new(),
        gone: 0,
    };

    /// Of the entries of a leaf.
    pub(super) fn of(leaf: Vec<(K, V)>) -> Self {
        Front {
            list: leaf,
            gone: 0,
        }
    }
}

impl<K: Key, V: Measure> Front<K, V> {
    #[inline]
    pub(super) fn entries(&self) -> &[(K, V)] {
        self.list.get(self.gone..).unwrap_or_default()
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.list.len() - self.gone
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it takes no more entries behind its last one: it is on its way out, and
    /// the next ones are for the tree.
    pub(super) fn is_over(&self) -> bool {
        self.list.len() >= FULL
    }

    pub(super) fn is_full(&self) -> bool {
        self.len() >= FULL
    }

    /// Whether a key would stand in front of its last entry, or is that one's.
    #[inline]
    pub(super) fn reaches(&self, key: &K) -> bool {
        let last = self.list.last();
        last.is_some_and(|last| !self.is_empty() && !last.0.goes_before(key))
    }

    /// Puts an entry behind all others. Not into one that is over.
    #[inline]
    pub(super) fn push(&mut self, entry: (K, V), ledger: &mut Ledger) {
        if self.list.len() == self.list.capacity() {
            self.close_up();
            ledger.reserve(&mut self.list, 1);
        }
        self.list.push(entry);
    }

    /// Where a key stands, or else where it belongs.
    pub(super) fn stored(&self, key: &K) -> Result<usize, usize> {
        let at = rank(self.entries(), |other| other.goes_before(key));
        match self.entries().get(at) {
            Some(known) if known.0 == *key => Ok(at),
            _ => Err(at),
        }
    }

    /// Gives the entry at this place another measure.
    pub(super) fn set(&mut self, at: usize, value: V) {
        if let Some(known) = self.list.get_mut(self.gone + at) {
            known.1 = value;
        }
    }

    /// Puts an entry at this place. Not into one that is full.
    pub(super) fn insert(&mut self, at: usize, entry: (K, V), ledger: &mut Ledger) {
        if self.gone == 0 {
            ledger.reserve(&mut self.list, 1);
            self.list.insert(at, entry);
            return;
        }
        // Those before it move into the room of one that has gone.
        let before = self.gone..self.gone + at;
        self.gone -= 1;
        self.list.copy_within(before, self.gone);
        if let Some(stored) = self.list.get_mut(self.gone + at) {
            *stored = entry;
        }
    }

    /// Takes out the first entry.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<(K, V)> {
        let first = self.entries().first().copied()?;
        self.gone += 1;
        Some(first)
    }

    /// Takes out the last entry.
    pub(super) fn pop_last(&mut self) -> Option<(K, V)> {
        match self.is_empty() {
            true => None,
            false => self.list.pop(),
        }
    }

    /// Takes out the entry with this key.
    #[inline]
    pub(super) fn take(&mut self, key: &K) -> Option<(K, V)> {
        if self.entries().first().is_some_and(|first| first.0 == *key) {
            return self.pop();
        }
        let at = find(self.entries(), key)?;
        Some(self.list.remove(self.gone + at))
    }

    /// Drops up to `limit` entries with the lowest keys and returns how many.
    pub(super) fn drain(&mut self, limit: usize) -> usize {
        let count = limit.min(self.len());
        self.gone += count;
        count
    }

    /// Gives memory back once more than half of it is unused.
    pub(super) fn trim(&mut self, ledger: &mut Ledger) {
        if self.len() * 2 < self.list.capacity() {
            self.close_up();
            ledger.trim(&mut self.list);
        }
    }

    /// Bytes allocated.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.list.capacity() * size_of::<(K, V)>()
    }

    /// Takes the room back of what has gone.
    fn close_up(&mut self) {
        self.list.drain(..self.gone);
        self.gone = 0;
    }
}
