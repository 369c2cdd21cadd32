//! Hash tables that grow a few entries at a time.
//!
//! An ordinary hash table moves all its entries at once when it is full. With
//! millions of entries, each with its name elsewhere in memory, one command would
//! block the server for seconds. Here a full table is set aside, one of twice the
//! size takes its place, and each insertion and removal moves a few entries over. A
//! sparse table shrinks in the same way, so that a long queue gives its memory back
//! after it was consumed.
//!
//! Only the allocation of the new table still depends on the size: it sets one byte
//! for each bucket, which takes a few milliseconds for eight million entries. The
//! rest of its memory is not touched before it is used.

use hashbrown::HashTable;

use super::footprint::allocated;

/// Maximum number of entries that one operation moves.
const MOVED: usize = 8;
/// Maximum number of buckets that one operation searches for entries to move. With
/// both limits the old table is empty before the new one is full; see
/// [`Table::resize`].
const SEARCHED: usize = 64;
/// A table with at most this many buckets is not shrunk.
const SMALL: usize = 64;

/// A hash table that does not store the hashes of its entries.
///
/// Insertion and removal take a function that computes the hash of an entry. The
/// hash must not change, and it must be possible to compute, as long as the entry
/// is in the table. Finding, inserting and removing are O(1), except for the
/// allocation of a new table.
#[derive(Debug, Clone)]
pub struct Table<T> {
    entries: HashTable<T>,
    /// The table that was set aside, with the entries that were not moved yet.
    /// Boxed because there rarely is one.
    old: Option<Box<Old<T>>>,
}

#[derive(Debug, Clone)]
struct Old<T> {
    entries: HashTable<T>,
    /// All buckets before this one are empty.
    next: usize,
}

impl<T> Default for Table<T> {
    fn default() -> Table<T> {
        Table::with_capacity(0)
    }
}

impl<T> Table<T> {
    /// An empty table with room for `capacity` entries.
    pub fn with_capacity(capacity: usize) -> Table<T> {
        Table {
            entries: HashTable::with_capacity(capacity),
            old: None,
        }
    }

    /// The number of entries. O(1).
    pub fn len(&self) -> usize {
        self.entries.len() + self.old.as_ref().map_or(0, |old| old.entries.len())
    }

    /// Whether the table is empty. O(1).
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.old.is_none()
    }

    /// The entry with this hash for which `is` holds.
    #[inline]
    pub fn find(&self, hash: u64, is: impl Fn(&T) -> bool) -> Option<&T> {
        let found = self.entries.find(hash, &is);
        match &self.old {
            Some(old) if found.is_none() => old.entries.find(hash, is),
            _ => found,
        }
    }

    /// The bucket of the entry with this hash for which `is` holds, to be used with
    /// [`Table::at`]. `None` also for an entry that was not moved yet.
    #[inline]
    pub fn place_of(&self, hash: u64, is: impl Fn(&T) -> bool) -> Option<usize> {
        self.entries.find_bucket_index(hash, is)
    }

    /// The entry in a bucket now, whichever it is.
    #[inline]
    pub fn at(&self, stored: usize) -> Option<&T> {
        self.entries.get_bucket(stored)
    }

    /// The entry in a bucket now, for changes that keep its hash.
    #[inline]
    pub fn at_mut(&mut self, stored: usize) -> Option<&mut T> {
        self.entries.get_bucket_mut(stored)
    }

    /// The entry with this hash for which `is` holds, for changes that keep its
    /// hash.
    #[inline]
    pub fn find_mut(&mut self, hash: u64, is: impl Fn(&T) -> bool) -> Option<&mut T> {
        let found = self.entries.find_mut(hash, &is);
        match &mut self.old {
            Some(old) if found.is_none() => old.entries.find_mut(hash, is),
            _ => found,
        }
    }

    /// Adds an entry that is not in the table yet. `hasher` computes the hash of an
    /// entry.
    pub fn insert_unique(&mut self, hash: u64, entry: T, hasher: impl Fn(&T) -> u64) {
        if self.entries.len() == self.entries.capacity() && self.old.is_none() {
            self.resize();
        }
        self.entries.insert_unique(hash, entry, &hasher);
        if self.old.is_some() {
            self.move_some(hasher);
        }
    }

    /// Removes and returns the entry with this hash for which `is` holds. `hasher`
    /// computes the hash of an entry.
    pub fn remove(
        &mut self,
        hash: u64,
        is: impl Fn(&T) -> bool,
        hasher: impl Fn(&T) -> u64,
    ) -> Option<T> {
        let found = match (self.entries.find_entry(hash, &is), &mut self.old) {
            (Ok(entry), _) => entry,
            (Err(_), Some(old)) => old.entries.find_entry(hash, is).ok()?,
            (Err(_), None) => return None,
        };
        let (entry, _) = found.remove();
        let buckets = self.entries.num_buckets();
        if self.old.is_none() && buckets > SMALL && self.entries.len() < buckets / 8 {
            self.resize();
        }
        if self.old.is_some() {
            self.move_some(hasher);
        }
        Some(entry)
    }

    /// Keeps the entries for which `stays` holds. O(n).
    pub fn retain(&mut self, stays: impl Fn(&T) -> bool) {
        self.entries.retain(|entry| stays(entry));
        if let Some(old) = &mut self.old {
            old.entries.retain(|entry| stays(entry));
        }
        self.let_old_go();
    }

    /// Removes and returns any entry. O(1) amortised. Only for freeing a large
    /// table in slices: it must not be used for anything else afterwards.
    pub fn pop(&mut self) -> Option<T> {
        if self.old.is_none() {
            self.put_aside(0);
        }
        let old = self.old.as_mut()?;
        let mut popped = None;
        while popped.is_none() && old.next < old.entries.num_buckets() {
            popped = old.take_next();
        }
        self.let_old_go();
        popped
    }

    /// All entries, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &T> + '_ {
        let old = self.old.iter().flat_map(|old| old.entries.iter());
        self.entries.iter().chain(old)
    }

    /// Bytes allocated. O(1).
    pub fn allocation_size(&self) -> usize {
        let old = self.old.as_ref();
        let old = old.map_or(0, |old| {
            allocated(old.entries.allocation_size()) + size_of::<Old<T>>()
        });
        allocated(self.entries.allocation_size()) + old
    }

    /// Begins to move all entries to a table that suits their number.
    ///
    /// With `len` entries in `buckets`, the last entry has moved after `buckets /
    /// SEARCHED + len / MOVED` operations, which is less than a quarter of the buckets.
    /// Each of these operations may insert an entry, so the new table has room for a
    /// quarter of the buckets more. It has room for at least twice the present entries,
    /// so that the next move is far away.
    fn resize(&mut self) {
        let (len, buckets) = (self.entries.len(), self.entries.num_buckets());
        self.put_aside((2 * len).max(len + buckets / 4));
    }

    fn put_aside(&mut self, capacity: usize) {
        let entries = HashTable::with_capacity(capacity);
        let entries = std::mem::replace(&mut self.entries, entries);
        if !entries.is_empty() {
            self.old = Some(Box::new(Old { entries, next: 0 }));
        }
    }

    /// Moves some entries from the old table. Not inlined, because most operations
    /// have nothing to move.
    #[inline(never)]
    fn move_some(&mut self, hasher: impl Fn(&T) -> u64) {
        let Some(old) = &mut self.old else {
            return;
        };
        let mut moved = 0;
        for _ in 0..SEARCHED {
            if let Some(entry) = old.take_next() {
                self.entries.insert_unique(hasher(&entry), entry, &hasher);
                moved += 1;
                if moved == MOVED {
                    break;
                }
            }
        }
        self.let_old_go();
    }

    fn let_old_go(&mut self) {
        if self.old.as_ref().is_some_and(|old| old.entries.is_empty()) {
            self.old = None;
        }
    }
}

impl<T> Old<T> {
    /// Removes and returns the entry in the next bucket, if that is taken.
    fn take_next(&mut self) -> Option<T> {
        let entry = self.entries.get_bucket_entry(self.next).ok();
        self.next += 1;
        entry.map(|entry| entry.remove().0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cell::Cell;
    use std::collections::HashMap;

    /// A table and a map that must have the same entries.
    struct Pair {
        table: Table<(u64, u64)>,
        map: HashMap<u64, u64>,
        /// Bits of the hashes: with fewer bits, more entries share one.
        bits: u32,
        rehashed: Cell<usize>,
    }

    impl Pair {
        fn new(bits: u32) -> Pair {
            Pair {
                table: Table::default(),
                map: HashMap::new(),
                bits,
                rehashed: Cell::new(0),
            }
        }

        fn hash(&self, key: u64) -> u64 {
            key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - self.bits)
        }

        fn insert(&mut self, key: u64, value: u64) {
            let mut table = std::mem::take(&mut self.table);
            if self.map.insert(key, value).is_none() {
                table.insert_unique(self.hash(key), (key, value), |e| self.rehash(e));
            } else if let Some(entry) = table.find_mut(self.hash(key), |(k, _)| *k == key) {
                entry.1 = value;
            }
            self.table = table;
            self.check(key);
        }

        fn remove(&mut self, key: u64) {
            let mut table = std::mem::take(&mut self.table);
            let removed = table.remove(self.hash(key), |(k, _)| *k == key, |e| self.rehash(e));
            assert_eq!(removed, self.map.remove(&key).map(|value| (key, value)));
            self.table = table;
            self.check(key);
        }

        fn rehash(&self, (key, _): &(u64, u64)) -> u64 {
            self.rehashed.set(self.rehashed.get() + 1);
            self.hash(*key)
        }

        /// Checks what must hold after every operation.
        fn check(&self, key: u64) {
            assert!(self.rehashed.take() <= MOVED, "moved too many entries");
            let found = self.table.find(self.hash(key), |(k, _)| *k == key);
            assert_eq!(found.map(|(_, value)| value), self.map.get(&key));
            assert_eq!(self.table.len(), self.map.len());
            assert_eq!(self.table.is_empty(), self.map.is_empty());
            let full = self.table.entries.len() == self.table.entries.capacity();
            assert!(!full || self.table.old.is_none(), "full before all moved");
        }

        fn check_all(&self) {
            let all: HashMap<u64, u64> = self.table.iter().copied().collect();
            assert_eq!(
                (self.table.iter().count(), &all),
                (self.map.len(), &self.map)
            );
            for key in self.map.keys() {
                self.check(*key);
            }
        }
    }

    proptest! {
        #[test]
        fn a_table_equals_a_map_after_any_steps(
            bits in prop_oneof![Just(64u32), Just(12), Just(4)],
            runs in prop::collection::vec((0u8..7, 0u64..600, 0u64..1200), 1..24),
        ) {
            let mut pair = Pair::new(bits);
            for (kind, count, start) in runs {
                match kind {
                    0..=2 => (start..start + count).for_each(|key| pair.insert(key, start)),
                    3 => (start..start + count).for_each(|key| pair.remove(key)),
                    4 => (0..start + count).for_each(|key| pair.remove(key)),
                    // The keys come and go as in a queue: each key that is added is removed soon
                    // after.
                    5 => for key in start..start + count {
                        pair.insert(key + 40, key);
                        pair.remove(key);
                    },
                    _ => {
                        pair.table = pair.table.clone();
                        pair.table.retain(|(key, _)| key % 8 == start % 8);
                        pair.map.retain(|key, _| key % 8 == start % 8);
                    }
                }
                pair.check_all();
            }
            let mut popped = HashMap::new();
            while let Some((key, value)) = pair.table.pop() {
                prop_assert!(popped.insert(key, value).is_none());
            }
            prop_assert_eq!(popped, pair.map);
            prop_assert!(pair.table.is_empty());
        }
    }

    #[test]
    fn a_table_shrinks_when_most_entries_are_removed() {
        let mut pair = Pair::new(64);
        (0..100_000).for_each(|key| pair.insert(key, key));
        let most = pair.table.allocation_size();
        (3..100_000).for_each(|key| pair.remove(key));
        let least = pair.table.allocation_size();
        assert!(most < 100_000 * 17 * 16 / 7, "{most} bytes for 100000");
        assert!(least <= 2 * SMALL * 17 + 200, "{least} bytes for 3");
    }
}
