//! A table that assigns numbers to its entries and stores several in one
//! allocation.

use super::footprint::allocated;
use super::long_list::LongList;
use crate::IS_SMALL;

/// Pages in a piece. Copying the first piece as it grows takes microseconds.
const PIECE: usize = if IS_SMALL { 4 } else { 4096 };

/// Entries by number. An entry keeps its number as long as it exists.
///
/// `PAGE` entries share an allocation. One for each entry would cost a pointer and
/// another cache miss; one for very many would be kept as long as any of them
/// exists. An empty page is freed, and the numbers of removed entries are assigned
/// again.
///
/// Pages are found through plain lists of pointers, because each further step of a
/// random look-up costs a cache miss.
#[derive(Debug, Clone)]
pub struct Slots<T, const PAGE: usize> {
    /// Lists of pages. All but the last are full, so no list that is copied to grow
    /// is longer than one piece.
    pieces: Vec<Piece<T, PAGE>>,
    /// Numbers that are free. The last one is assigned first.
    free: LongList<u32>,
    len: usize,
    /// How many pages are allocated.
    made: usize,
}

#[derive(Debug, Clone)]
struct Piece<T, const PAGE: usize> {
    /// `None` if no entry of the page exists.
    pages: Vec<Option<Page<T, PAGE>>>,
    /// The number of entries in each page.
    taken: Vec<u8>,
}

type Page<T, const PAGE: usize> = Box<[Option<T>; PAGE]>;

impl<T, const PAGE: usize> Default for Slots<T, PAGE> {
    fn default() -> Slots<T, PAGE> {
        Slots {
            pieces: Vec::new(),
            free: LongList::default(),
            len: 0,
            made: 0,
        }
    }
}

impl<T, const PAGE: usize> Slots<T, PAGE> {
    /// An upper bound: all numbers are below it. O(1).
    pub fn end(&self) -> usize {
        let before = self.pieces.len().saturating_sub(1) * PIECE;
        let last = self.pieces.last().map_or(0, |piece| piece.pages.len());
        (before + last) * PAGE
    }

    /// The entry with this number. O(1).
    #[inline]
    pub fn get(&self, number: usize) -> Option<&T> {
        let at = number / PAGE;
        let page = self.pieces.get(at / PIECE)?.pages.get(at % PIECE)?;
        page.as_ref()?.get(number % PAGE)?.as_ref()
    }

    /// The entry with this number, for changes. O(1).
    #[inline]
    pub fn get_mut(&mut self, number: usize) -> Option<&mut T> {
        let at = number / PAGE;
        let page = self.pieces.get_mut(at / PIECE)?.pages.get_mut(at % PIECE)?;
        page.as_mut()?.get_mut(number % PAGE)?.as_mut()
    }

    /// Adds an entry and returns its number. O(1).
    pub fn add(&mut self, thing: T) -> usize {
        let number = self.free.pop_back();
        let number = number.map_or_else(|| self.add_page(), |number| number as usize);
        if let Some((page, taken)) = self.page_mut(number) {
            let is_new = page.is_none();
            let slots = page.get_or_insert_with(|| Box::new([const { None }; PAGE]));
            if let Some(slot) = slots.get_mut(number % PAGE) {
                *slot = Some(thing);
                *taken += 1;
                self.len += 1;
                self.made += usize::from(is_new);
            }
        }
        number
    }

    /// Removes the entry with this number, if there is one. O(1).
    pub fn remove(&mut self, number: usize) {
        let Some((page, taken)) = self.page_mut(number) else {
            return;
        };
        let slot = page.as_mut().and_then(|s| s.get_mut(number % PAGE));
        if slot.and_then(Option::take).is_none() {
            return;
        }
        *taken -= 1;
        if *taken == 0 {
            *page = None;
            self.made -= 1;
        }
        self.len -= 1;
        if self.len == 0 {
            *self = Slots::default();
        } else {
            self.free.push_back(number as u32);
        }
    }

    /// The entries of the last page; `None` if there is no page.
    pub fn last_page(&mut self) -> Option<impl Iterator<Item = &mut T>> {
        let page = self.pieces.last_mut()?.pages.last_mut()?;
        Some(page.iter_mut().flat_map(|slots| slots.iter_mut().flatten()))
    }

    /// Drops the last page with all its entries. Only for freeing in slices: the
    /// table must not be used for anything else afterwards.
    pub fn drop_last_page(&mut self) {
        if let Some(last) = self.pieces.last_mut() {
            last.pages.pop();
            if last.pages.is_empty() {
                self.pieces.pop();
            }
        }
    }

    /// Bytes allocated, except for unused capacity of the last list of pages. O(1).
    pub fn memory_bytes(&self) -> usize {
        const TAKEN: usize = size_of::<u8>();
        self.made * allocated(size_of::<[Option<T>; PAGE]>())
            + self.end() / PAGE * (size_of::<Option<Page<T, PAGE>>>() + TAKEN)
            + self.pieces.capacity() * size_of::<Piece<T, PAGE>>()
            + self.free.memory_bytes()
    }

    /// The page of a number, and the number of entries in it.
    fn page_mut(&mut self, number: usize) -> Option<(&mut Option<Page<T, PAGE>>, &mut u8)> {
        let at = number / PAGE;
        let piece = self.pieces.get_mut(at / PIECE)?;
        let at = at % PIECE;
        Some((piece.pages.get_mut(at)?, piece.taken.get_mut(at)?))
    }

    /// Adds a page of numbers. All but the lowest are free; that one is returned.
    fn add_page(&mut self) -> usize {
        let first = self.end();
        let is_full = |piece: &Piece<T, PAGE>| piece.pages.len() == PIECE;
        if self.pieces.last().is_none_or(is_full) {
            let room = if self.pieces.is_empty() { 0 } else { PIECE };
            if self.pieces.is_empty() {
                // A list doubles from four, and most tables have one piece.
                self.pieces.reserve_exact(1);
            }
            self.pieces.push(Piece {
                pages: Vec::with_capacity(room),
                taken: Vec::with_capacity(room),
            });
        }
        if let Some(last) = self.pieces.last_mut() {
            last.pages.push(None);
            last.taken.push(0);
        }
        for number in (first + 1..first + PAGE).rev() {
            self.free.push_back(number as u32);
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn slots_equal_a_map_after_any_steps(
            steps in prop::collection::vec((0u8..5, 0usize..64), 1..200),
        ) {
            let mut slots: Slots<usize, 16> = Slots::default();
            let mut model = BTreeMap::new();
            for (step, (kind, at)) in steps.into_iter().enumerate() {
                match kind {
                    0..=2 => {
                        let number = slots.add(step);
                        prop_assert!(model.insert(number, step).is_none());
                    }
                    _ => {
                        slots.remove(at);
                        model.remove(&at);
                    }
                }
                if let Some(thing) = slots.get_mut(at) {
                    *thing += 1;
                    *model.entry(at).or_default() += 1;
                }
                let all = (0..slots.end()).filter_map(|n| Some((n, *slots.get(n)?)));
                prop_assert_eq!(all.collect::<BTreeMap<_, _>>(), model.clone());
            }
        }
    }

    #[test]
    fn empty_pages_are_freed() {
        let mut slots: Slots<[u64; 16], 16> = Slots::default();
        (0..1000).for_each(|n| assert_eq!(slots.add([n; 16]), n as usize));
        let full = slots.memory_bytes();
        (8..1000).for_each(|n| slots.remove(n));
        assert!(slots.memory_bytes() < full / 8, "{full}");
        assert_eq!(slots.add([1; 16]), 999);
        (0..1000).for_each(|n| slots.remove(n));
        assert_eq!((slots.memory_bytes(), slots.end()), (0, 0));
    }

    #[test]
    fn dropping_the_last_page_drops_its_entries_only() {
        let mut slots: Slots<usize, 16> = Slots::default();
        (0..100).for_each(|n| assert_eq!(slots.add(n), n));
        let mut gone = Vec::new();
        let last = |slots: &mut Slots<usize, 16>| -> Option<Vec<usize>> {
            Some(slots.last_page()?.map(|n| *n).collect())
        };
        while let Some(page) = last(&mut slots) {
            gone.push(page);
            slots.drop_last_page();
        }
        assert_eq!(gone.concat().len(), 100);
        assert_eq!(gone[0], [96, 97, 98, 99]);
    }
}
