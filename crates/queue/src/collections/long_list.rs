//! A double-ended list for millions of entries that never copies them all to grow.

use std::collections::{vec_deque, VecDeque};

/// Entries of a piece. Copying the first piece as it grows takes microseconds, and
/// a million entries need only a few hundred pieces.
const PIECE: usize = 4096;

/// A list in pieces. A `VecDeque` copies all its entries when it is full, which
/// blocks the server for as long as that takes; this list adds another piece.
#[derive(Debug, Clone)]
pub struct LongList<T> {
    /// No piece is empty, and all but the first and the last are full.
    pieces: VecDeque<VecDeque<T>>,
}

impl<T> Default for LongList<T> {
    fn default() -> LongList<T> {
        LongList {
            pieces: VecDeque::new(),
        }
    }
}

impl<T> LongList<T> {
    /// The number of entries. O(1).
    pub fn len(&self) -> usize {
        let between = self.pieces.len().saturating_sub(2) * PIECE;
        let first = self.pieces.front().map_or(0, VecDeque::len);
        match self.pieces.back() {
            Some(last) if self.pieces.len() > 1 => first + between + last.len(),
            _ => first,
        }
    }

    /// The first entry. O(1).
    pub fn front(&self) -> Option<&T> {
        self.pieces.front()?.front()
    }

    /// Adds an entry at the end. O(1): copies at most one piece.
    pub fn push_back(&mut self, entry: T) {
        match self.pieces.back_mut() {
            Some(last) if last.len() < PIECE => last.push_back(entry),
            Some(_) => {
                let mut piece = VecDeque::with_capacity(PIECE);
                piece.push_back(entry);
                self.pieces.push_back(piece);
            }
            None => {
                // A list doubles from four, and most lists have one piece.
                self.pieces.reserve_exact(1);
                self.pieces.push_back(VecDeque::from([entry]));
            }
        }
    }

    /// Removes and returns the first entry. O(1).
    pub fn pop_front(&mut self) -> Option<T> {
        let first = self.pieces.front_mut()?;
        let entry = first.pop_front();
        if first.is_empty() {
            self.pieces.pop_front();
        }
        entry
    }

    /// Removes and returns the last entry. O(1).
    pub fn pop_back(&mut self) -> Option<T> {
        let last = self.pieces.back_mut()?;
        let entry = last.pop_back();
        if last.is_empty() {
            self.pieces.pop_back();
        }
        entry
    }

    /// All entries in order.
    pub fn iter(&self) -> Iter<'_, T> {
        Iter {
            entries: self.pieces.iter().flatten(),
            left: self.len(),
        }
    }

    /// Keeps the entries for which `stays` holds. O(n).
    pub fn retain(&mut self, stays: impl Fn(&T) -> bool) {
        let mut all = std::mem::take(self);
        while let Some(entry) = all.pop_front() {
            if stays(&entry) {
                self.push_back(entry);
            }
        }
    }

    /// Bytes allocated, exact but for the list of pieces. O(1).
    pub fn memory_bytes(&self) -> usize {
        let first = self.pieces.front().map_or(0, VecDeque::capacity);
        let others = self.pieces.len().saturating_sub(1) * PIECE;
        (first + others) * size_of::<T>() + self.pieces.capacity() * size_of::<VecDeque<T>>()
    }
}

/// The entries of a list in order.
#[derive(Debug, Clone)]
pub struct Iter<'a, T> {
    entries: std::iter::Flatten<vec_deque::Iter<'a, VecDeque<T>>>,
    left: usize,
}

impl<'a, T> Iterator for Iter<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        self.left = self.left.saturating_sub(1);
        self.entries.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<T> ExactSizeIterator for Iter<'_, T> {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_long_list_equals_a_vec_deque_after_any_steps(
            runs in prop::collection::vec((0u8..5, 0u64..6000), 1..16),
        ) {
            let mut list = LongList::default();
            let mut model = VecDeque::new();
            for (kind, count) in runs {
                for n in 0..count {
                    match kind {
                        0..=2 => {
                            list.push_back(n);
                            model.push_back(n);
                        }
                        3 => prop_assert_eq!(list.pop_front(), model.pop_front()),
                        _ => prop_assert_eq!(list.pop_back(), model.pop_back()),
                    }
                    prop_assert_eq!(list.len(), model.len());
                }
                if count % 4 == 0 {
                    list.retain(|n| n % 3 != 0);
                    model.retain(|n| n % 3 != 0);
                }
                prop_assert!(list.iter().eq(model.iter()));
                prop_assert_eq!(list.iter().len(), model.len());
                prop_assert_eq!(list.front(), model.front());
            }
        }
    }

    #[test]
    fn a_list_that_grows_copies_no_full_piece() {
        let mut list = LongList::default();
        (0..PIECE * 3).for_each(|n| list.push_back(n));
        let before: Vec<*const usize> = list.iter().map(std::ptr::from_ref).collect();
        (0..PIECE * 300).for_each(|n| list.push_back(n));
        assert!(list
            .iter()
            .map(std::ptr::from_ref)
            .zip(before)
            .all(|(a, b)| a == b));
        assert!(list.memory_bytes() < (303 * PIECE) * 8 * 11 / 10);
    }
}
