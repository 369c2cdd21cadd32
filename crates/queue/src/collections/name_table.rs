//! A hash table for things that are found by names which clients choose.
//!
//! The names themselves are stored elsewhere.

use super::table::Table;

/// A hash table that grows a few entries at a time, as [`Table`] does.
///
/// It stores half of each hash: computing it again from the name would cost several
/// cache misses each time an entry moves.
#[derive(Debug, Clone)]
pub struct NameTable<T> {
    table: Table<Entry<T>>,
}

#[derive(Debug, Clone)]
struct Entry<T> {
    hash: u32,
    thing: T,
}

impl<T> Entry<T> {
    fn hash(&self) -> u64 {
        spread(self.hash)
    }
}

/// Spreads a stored half over 64 bits. The table needs them all: the low bits
/// select the bucket, the high ones tell entries apart before they are compared.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

impl<T> Default for NameTable<T> {
    fn default() -> NameTable<T> {
        NameTable::with_capacity(0)
    }
}

impl<T> NameTable<T> {
    /// An empty table with room for `capacity` entries.
    pub fn with_capacity(capacity: usize) -> NameTable<T> {
        NameTable {
            table: Table::with_capacity(capacity),
        }
    }

    /// Whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// The entry for which `is` holds, by the hash of its name. O(1).
    pub fn find(&self, hash: u64, is: impl Fn(&T) -> bool) -> Option<&T> {
        let hash = hash as u32;
        let is = |entry: &Entry<T>| entry.hash == hash && is(&entry.thing);
        self.table.find(spread(hash), is).map(|entry| &entry.thing)
    }

    /// The entry for which `is` holds, for changes, by the hash of its name. O(1).
    pub fn find_mut(&mut self, hash: u64, is: impl Fn(&T) -> bool) -> Option<&mut T> {
        let hash = hash as u32;
        let is = |entry: &Entry<T>| entry.hash == hash && is(&entry.thing);
        let found = self.table.find_mut(spread(hash), is);
        found.map(|entry| &mut entry.thing)
    }

    /// Adds an entry by the hash of its name, which no other entry may have. O(1).
    pub fn insert_unique(&mut self, hash: u64, thing: T) {
        let hash = hash as u32;
        let entry = Entry { hash, thing };
        self.table.insert_unique(spread(hash), entry, Entry::hash);
    }

    /// Removes and returns the entry for which `is` holds, by the hash of its name.
    /// O(1).
    pub fn remove(&mut self, hash: u64, is: impl Fn(&T) -> bool) -> Option<T> {
        let hash = hash as u32;
        let is = |entry: &Entry<T>| entry.hash == hash && is(&entry.thing);
        let removed = self.table.remove(spread(hash), is, Entry::hash);
        removed.map(|entry| entry.thing)
    }

    /// Keeps the entries for which `stays` holds. O(n).
    pub fn retain(&mut self, stays: impl Fn(&T) -> bool) {
        self.table.retain(|entry| stays(&entry.thing));
    }

    /// Bytes allocated. O(1).
    pub fn allocation_size(&self) -> usize {
        self.table.allocation_size()
    }
}
