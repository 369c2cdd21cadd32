//! Things by number, a few in one allocation.

use super::footprint::allocated;
use super::long_list::LongList;
use super::IS_SMALL;

/// Pages of a piece: a growing first piece is copied within microseconds.
const PIECE: usize = if IS_SMALL { 4 } else { 4096 };

/// Things that are found by a number which each keeps as long as it is there.
///
/// `PAGE` of them lie beside each other: an allocation for each would cost a pointer
/// and another wait for memory, and one for many would stay as long as any of them. A
/// page goes when it is empty, and its numbers are given again.
///
/// The pages are known by plain lists of pointers, since what is found anywhere among
/// many waits for each step that is in no cache.
#[derive(Debug, Clone)]
pub struct Slots<T, const PAGE: usize> {
    /// All but the last are full, so that no list is copied that is longer than one.
    pieces: Vec<Piece<T, PAGE>>,
    /// Numbers that were given and are free again; the last is given first.
    free: LongList<u32>,
    len: usize,
    /// Pages that are there.
    made: usize,
}

#[derive(Debug, Clone)]
struct Piece<T, const PAGE: usize> {
    /// `None` where a page is empty.
    pages: Vec<Option<Page<T, PAGE>>>,
    /// How many things are in each.
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
    /// All numbers are below this one.
    pub fn end(&self) -> usize {
        let before = self.pieces.len().saturating_sub(1) * PIECE;
        let last = self.pieces.last().map_or(0, |piece| piece.pages.len());
        (before + last) * PAGE
    }

    /// The thing with this number. O(1).
    #[inline]
    pub fn get(&self, number: usize) -> Option<&T> {
        let at = number / PAGE;
        let page = self.pieces.get(at / PIECE)?.pages.get(at % PIECE)?;
        page.as_ref()?.get(number % PAGE)?.as_ref()
    }

    /// The same, to change.
    #[inline]
    pub fn get_mut(&mut self, number: usize) -> Option<&mut T> {
        let at = number / PAGE;
        let page = self.pieces.get_mut(at / PIECE)?.pages.get_mut(at % PIECE)?;
        page.as_mut()?.get_mut(number % PAGE)?.as_mut()
    }

    /// Takes a thing in; its number. O(1).
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

    /// Lets the thing with this number go, if there is one. O(1).
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

    /// Those of the last page; `None` where there is no page.
    pub fn last_page(&mut self) -> Option<impl Iterator<Item = &mut T>> {
        let page = self.pieces.last_mut()?.pages.last_mut()?;
        Some(page.iter_mut().flat_map(|slots| slots.iter_mut().flatten()))
    }

    /// Lets all of the last page go, for freeing them in slices: it is of no other
    /// use afterwards.
    pub fn drop_last_page(&mut self) {
        if let Some(last) = self.pieces.last_mut() {
            last.pages.pop();
            if last.pages.is_empty() {
                self.pieces.pop();
            }
        }
    }

    /// Bytes allocated; those of the lists of pages but for what the last has too many.
    pub fn memory_bytes(&self) -> usize {
        const TAKEN: usize = size_of::<u8>();
        self.made * allocated(size_of::<[Option<T>; PAGE]>())
            + self.end() / PAGE * (size_of::<Option<Page<T, PAGE>>>() + TAKEN)
            + self.pieces.capacity() * size_of::<Piece<T, PAGE>>()
            + self.free.memory_bytes()
    }

    /// The page of a number, and how many things are in it.
    fn page_mut(&mut self, number: usize) -> Option<(&mut Option<Page<T, PAGE>>, &mut u8)> {
        let at = number / PAGE;
        let piece = self.pieces.get_mut(at / PIECE)?;
        let at = at % PIECE;
        Some((piece.pages.get_mut(at)?, piece.taken.get_mut(at)?))
    }

    /// Makes numbers; the lowest of them is not free.
    fn add_page(&mut self) -> usize {
        let first = self.end();
        let is_full = |piece: &Piece<T, PAGE>| piece.pages.len() == PIECE;
        if self.pieces.last().is_none_or(is_full) {
            let room = if self.pieces.is_empty() { 0 } else { PIECE };
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
        fn behaves_like_a_map(steps in prop::collection::vec((0u8..5, 0usize..64), 1..200)) {
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
    fn pages_that_are_empty_take_no_memory() {
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
    fn goes_a_page_at_a_time() {
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
