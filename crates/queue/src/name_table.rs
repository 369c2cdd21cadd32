//! Tables by names that clients choose.

use super::table::Table;

/// Things that are found by names which are kept elsewhere, in a table that
/// grows a few entries at a time as [`Table`] does.
///
/// Half of each hash is kept with its entry. To compute it again from the name
/// would cost several cache misses, each time the entry moves.
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

/// The table takes the bucket from the low bits, and from the high ones what
/// it tells entries apart by without looking at them.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

impl<T> Default for NameTable<T> {
    fn default() -> NameTable<T> {
        NameTable::with_capacity(0)
    }
}

impl<T> NameTable<T> {
    /// An empty table with room for so many entries.
    pub fn with_capacity(capacity: usize) -> NameTable<T> {
        NameTable {
            table: Table::with_capacity(capacity),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// The thing of which `is` holds, by the hash of its name. O(1).
    pub fn find(&self, hash: u64, is: impl Fn(&T) -> bool) -> Option<&T> {
        let hash = hash as u32;
        let is = |entry: &Entry<T>| entry.hash == hash && is(&entry.thing);
        self.table.find(spread(hash), is).map(|entry| &entry.thing)
    }

    /// The same, to change.
    pub fn find_mut(&mut self, hash: u64, is: impl Fn(&T) -> bool) -> Option<&mut T> {
        let hash = hash as u32;
        let is = |entry: &Entry<T>| entry.hash == hash && is(&entry.thing);
        let found = self.table.find_mut(spread(hash), is);
        found.map(|entry| &mut entry.thing)
    }

    /// Enters a thing whose name has this hash, and no other thing has. O(1).
    pub fn insert_unique(&mut self, hash: u64, thing: T) {
        let hash = hash as u32;
        let entry = Entry { hash, thing };
        self.table.insert_unique(spread(hash), entry, Entry::hash);
    }

    /// Takes out the thing of which `is` holds, by the hash of its name. O(1).
    pub fn remove(&mut self, hash: u64, is: impl Fn(&T) -> bool) -> Option<T> {
        let hash = hash as u32;
        let is = |entry: &Entry<T>| entry.hash == hash && is(&entry.thing);
        let removed = self.table.remove(spread(hash), is, Entry::hash);
        removed.map(|entry| entry.thing)
    }

    /// Keeps the things of which `stays` holds. O(n).
    pub fn retain(&mut self, stays: impl Fn(&T) -> bool) {
        self.table.retain(|entry| stays(&entry.thing));
    }

    /// Bytes allocated.
    pub fn allocation_size(&self) -> usize {
        self.table.allocation_size()
    }
}
