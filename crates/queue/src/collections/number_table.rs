//! A hash table for numbers that the queue itself assigns, such as page numbers.
//!
//! They come in sequence and cannot be chosen by clients, so a fast hash that keeps
//! neighbours together is safe.

use super::table::Table;

/// A map from numbers to values that grows a few entries at a time, as [`Table`]
/// does.
#[derive(Debug, Clone)]
pub struct NumberTable<V> {
    table: Table<(u64, V)>,
    /// A cache of buckets where numbers were found last: most numbers are asked for
    /// several times in a row. An entry may be outdated, so each use checks it.
    positions: [u32; REMEMBERED],
}

impl<V> Default for NumberTable<V> {
    fn default() -> NumberTable<V> {
        NumberTable {
            table: Table::default(),
            positions: [0; REMEMBERED],
        }
    }
}

/// Number of buckets whose positions are remembered: those of the numbers that are
/// added, of those that are removed, and of a neighbour of each.
const REMEMBERED: usize = 4;

/// The hash of a number. Sixteen consecutive numbers (a row) are neighbours in the
/// table and so in the cache; multiplication spreads the rows. The upper bits, by
/// which the table tells entries apart, differ within a row.
#[inline]
fn spread(number: u64) -> u64 {
    let mixed = (number / ROW).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let row = mixed ^ (mixed >> 32);
    (row.wrapping_mul(ROW) + number % ROW) ^ (number << 57)
}

const ROW: u64 = 16;

impl<V> NumberTable<V> {
    /// The value for this number. O(1).
    #[inline]
    pub fn get(&self, number: u64) -> Option<&V> {
        let is = |(n, _): &(u64, V)| *n == number;
        let remembered = self.table.at(self.remembered(number));
        let found = remembered.filter(|entry| is(entry));
        let found = found.or_else(|| self.table.find(spread(number), is));
        found.map(|(_, value)| value)
    }

    /// The value for this number, for changes. O(1).
    #[inline]
    pub fn get_mut(&mut self, number: u64) -> Option<&mut V> {
        let is = |(n, _): &(u64, V)| *n == number;
        let mut stored = self.remembered(number);
        if !self.table.at(stored).is_some_and(is) {
            let Some(found) = self.table.place_of(spread(number), is) else {
                let unmoved = self.table.find_mut(spread(number), is);
                return unmoved.map(|(_, value)| value);
            };
            stored = found;
            if let Some(remembered) = self.positions.get_mut(number as usize % REMEMBERED) {
                *remembered = stored as u32;
            }
        }
        self.table.at_mut(stored).map(|(_, value)| value)
    }

    /// The bucket where this number may be, from the cache.
    #[inline]
    fn remembered(&self, number: u64) -> usize {
        let stored = self.positions.get(number as usize % REMEMBERED);
        stored.map_or(0, |stored| *stored as usize)
    }

    /// Sets the value for this number and drops an earlier one. O(1).
    pub fn insert(&mut self, number: u64, value: V) {
        if let Some(stored) = self.get_mut(number) {
            *stored = value;
            return;
        }
        self.add(number, value);
    }

    /// Adds a value for a number that has none. O(1).
    pub fn add(&mut self, number: u64, value: V) {
        self.table
            .insert_unique(spread(number), (number, value), |(n, _)| spread(*n));
    }

    /// Removes and returns the value for this number. O(1).
    pub fn remove(&mut self, number: u64) -> Option<V> {
        let is = |(n, _): &(u64, V)| *n == number;
        let removed = self.table.remove(spread(number), is, |(n, _)| spread(*n));
        removed.map(|(_, value)| value)
    }

    /// Removes and returns any value, as [`Table::pop`] does.
    pub fn pop(&mut self) -> Option<V> {
        self.table.pop().map(|(_, value)| value)
    }

    /// Whether there are no values. O(1).
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.table.len() == 0
    }

    /// All numbers and their values, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &V)> + '_ {
        self.table.iter().map(|(number, value)| (*number, value))
    }

    /// Bytes allocated. O(1).
    pub fn allocation_size(&self) -> usize {
        self.table.allocation_size()
    }
}

impl<V> FromIterator<(u64, V)> for NumberTable<V> {
    fn from_iter<I: IntoIterator<Item = (u64, V)>>(entries: I) -> NumberTable<V> {
        let entries = entries.into_iter();
        let mut table = NumberTable {
            table: Table::with_capacity(entries.size_hint().0),
            positions: [0; REMEMBERED],
        };
        for (number, value) in entries {
            table.insert(number, value);
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setting_a_value_replaces_the_earlier_one() {
        let mut table = NumberTable::default();
        (0..5000).for_each(|n| table.insert(n, n));
        (0..5000).for_each(|n| table.insert(n, n + 1));
        assert_eq!(table.iter().count(), 5000);
        assert!((0..5000).all(|n| table.get(n) == Some(&(n + 1))));
        assert_eq!(table.remove(7), Some(8));
        assert_eq!((table.remove(7), table.get(7)), (None, None));
        let mut rest: Vec<u64> = table.iter().map(|(n, _)| n).collect();
        rest.sort_unstable();
        assert_eq!(rest, (0..5000).filter(|n| *n != 7).collect::<Vec<_>>());
    }

    #[test]
    fn numbers_in_any_step_are_spread_over_all_rows() {
        const BUCKETS: u64 = 8192;
        for step in [1, 2, 3, 7, 16, 100, 1000, 4096, 8192, 1_000_000, 1 << 32] {
            let mut rows = vec![0u32; (BUCKETS / ROW) as usize];
            let first = 1_795_159_374_646_123;
            for n in 0..BUCKETS / 2 {
                let bucket = spread(first + n * step) % BUCKETS;
                rows[(bucket / ROW) as usize] += 1;
            }
            let beyond: u32 = rows.iter().map(|n| n.saturating_sub(ROW as u32)).sum();
            assert!(beyond < BUCKETS as u32 / 8, "{beyond}, step {step}");
            assert!(rows.iter().all(|n| *n <= 8 * ROW as u32), "step {step}");
        }
    }

    #[test]
    fn sixteen_numbers_of_a_row_are_neighbours_and_differ_in_the_upper_bits() {
        for row in [0, 1, 77, 112_197_460_915] {
            let hashes: Vec<u64> = (row * ROW..(row + 1) * ROW).map(spread).collect();
            let positions = hashes.iter().map(|hash| hash % (1 << 20));
            let first = hashes[0] % (1 << 20);
            assert!(positions.eq(first..first + ROW));
            let tags: std::collections::HashSet<u64> = hashes.iter().map(|h| h >> 57).collect();
            assert_eq!(tags.len() as u64, ROW);
        }
    }

    #[test]
    fn collecting_from_an_iterator_allocates_the_final_size_at_once() {
        let table: NumberTable<u64> = (0..1000).map(|n| (n, n)).collect();
        let room = Table::<(u64, u64)>::with_capacity(1000);
        assert_eq!(table.allocation_size(), room.allocation_size());
        assert!((0..1000).all(|n| table.get(n) == Some(&n)));
    }
}
