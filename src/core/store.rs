//! Where the messages are: by their number.
//!
//! Messages are numbered in the order of sending, so neighbours in time are
//! neighbours in memory: pages of 128 consecutive numbers. A page that has
//! grown thin, because most of its messages are gone, is packed, so that a few
//! long-lived messages do not hold the memory of the many.

use super::message::Message;
use super::number_table::NumberTable;
use super::Seq;

const PAGE: u64 = 128;
/// A page with no more than this many messages is packed.
const THIN: u8 = 24;

#[derive(Debug, Clone, Default)]
struct Page {
    /// Which of the 128 numbers have a message.
    present: u128,
    /// One slot a number, or, when packed, one a message in order.
    slots: Vec<Option<Message>>,
    /// How many messages there are: counting bits takes its time.
    len: u8,
    packed: bool,
}

impl Page {
    fn bit(seq: Seq) -> u128 {
        1 << (seq % PAGE)
    }

    fn index(&self, seq: Seq) -> usize {
        if self.packed {
            (self.present & (Page::bit(seq) - 1)).count_ones() as usize
        } else {
            (seq % PAGE) as usize
        }
    }

    fn get(&self, seq: Seq) -> Option<&Message> {
        if self.present & Page::bit(seq) == 0 {
            return None;
        }
        self.slots.get(self.index(seq))?.as_ref()
    }

    fn get_mut(&mut self, seq: Seq) -> Option<&mut Message> {
        if self.present & Page::bit(seq) == 0 {
            return None;
        }
        let index = self.index(seq);
        self.slots.get_mut(index)?.as_mut()
    }

    fn insert(&mut self, seq: Seq, message: Message) {
        if self.packed {
            self.unpack();
        }
        let index = self.index(seq);
        if self.slots.len() < index {
            self.slots.resize_with(index, || None);
        }
        match self.slots.get_mut(index) {
            Some(slot) => *slot = Some(message),
            None => self.slots.push(Some(message)),
        }
        self.present |= Page::bit(seq);
        self.len += 1;
    }

    /// Drops a message that is there.
    fn remove(&mut self, seq: Seq) {
        let index = self.index(seq);
        if self.packed {
            self.slots.remove(index);
            if self.slots.len() * 2 <= self.slots.capacity() {
                self.slots.shrink_to_fit();
            }
        } else if let Some(slot) = self.slots.get_mut(index) {
            *slot = None;
        }
        self.present &= !Page::bit(seq);
        self.len -= 1;
    }

    fn unpack(&mut self) {
        let mut packed = std::mem::take(&mut self.slots).into_iter();
        for index in 0..PAGE {
            let slot = if self.present & (1 << index) != 0 {
                packed.next().flatten()
            } else {
                None
            };
            self.slots.push(slot);
        }
        self.packed = false;
    }

    fn pack(&mut self) {
        if !self.packed && self.len <= THIN {
            let mut slots = Vec::with_capacity(usize::from(self.len));
            slots.extend(self.slots.drain(..).filter(Option::is_some));
            self.slots = slots;
            self.packed = true;
        }
    }
}

/// All messages of a queue, by number.
#[derive(Debug, Clone, Default)]
pub struct Store {
    /// Boxed, for half of the table is empty at times.
    pages: NumberTable<Box<Page>>,
    len: usize,
    /// Page of the newest message: never packed, the next ones go there.
    newest: u64,
    heap_bytes: usize,
    /// Slots of all pages, taken or not.
    slots: usize,
}

impl Store {
    /// How many messages there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The message with this number. O(1).
    #[inline]
    pub fn get(&self, seq: Seq) -> Option<&Message> {
        self.pages.get(seq / PAGE)?.get(seq)
    }

    /// The same, to change. What is allocated for it must be changed through
    /// [`Store::with`] instead, so that the count of bytes stays right.
    #[inline]
    pub fn get_mut(&mut self, seq: Seq) -> Option<&mut Message> {
        self.pages.get_mut(seq / PAGE)?.get_mut(seq)
    }

    /// Changes a message, allocations included.
    pub fn with<R>(&mut self, seq: Seq, change: impl FnOnce(&mut Message) -> R) -> Option<R> {
        let message = self.pages.get_mut(seq / PAGE)?.get_mut(seq)?;
        let before = message.heap_bytes();
        let result = change(message);
        let after = message.heap_bytes();
        self.heap_bytes = (self.heap_bytes + after).saturating_sub(before);
        Some(result)
    }

    /// The extension of a message has grown by so many bytes through
    /// [`Store::get_mut`].
    pub fn count_extension(&mut self, bytes: usize) {
        self.heap_bytes += bytes;
    }

    /// Puts a message in under a number that has none.
    pub fn insert(&mut self, seq: Seq, message: Message) {
        let number = seq / PAGE;
        self.heap_bytes += message.heap_bytes();
        self.len += 1;
        match self.pages.get_mut(number) {
            Some(page) => {
                let before = page.slots.capacity();
                page.insert(seq, message);
                self.slots += page.slots.capacity();
                self.slots = self.slots.saturating_sub(before);
            }
            None => {
                let mut page = Box::new(Page::default());
                if self.len as u64 > PAGE {
                    // The queue is no small one: its pages fill.
                    page.slots.reserve_exact(PAGE as usize);
                }
                page.insert(seq, message);
                self.slots += page.slots.capacity();
                self.pages.add(number, page);
            }
        }
        if number > self.newest {
            let previous = std::mem::replace(&mut self.newest, number);
            if let Some(page) = self.pages.get_mut(previous) {
                let before = page.slots.capacity();
                page.pack();
                self.slots += page.slots.capacity();
                self.slots = self.slots.saturating_sub(before);
            }
        }
    }

    /// Drops a message, of which `last` takes what is still needed: moving it
    /// out as a whole costs more. O(1).
    pub fn remove<R>(&mut self, seq: Seq, last: impl FnOnce(&mut Message) -> R) -> Option<R> {
        let number = seq / PAGE;
        let page = self.pages.get_mut(number)?;
        let message = page.get_mut(seq)?;
        self.heap_bytes = self.heap_bytes.saturating_sub(message.heap_bytes());
        let taken = last(message);
        let before = page.slots.capacity();
        page.remove(seq);
        if number != self.newest {
            page.pack();
        }
        let after = match number != self.newest && page.len == 0 {
            true => {
                self.pages.remove(number);
                0
            }
            false => page.slots.capacity(),
        };
        self.slots += after;
        self.slots = self.slots.saturating_sub(before);
        self.len -= 1;
        Some(taken)
    }

    /// All messages in the order of their numbers. O(1) a message, and
    /// O(n log n) of the pages to start.
    pub fn iter(&self) -> impl Iterator<Item = (Seq, &Message)> + '_ {
        let pages = self.pages.iter();
        let mut pages: Vec<(u64, &Page)> = pages.map(|(number, page)| (number, &**page)).collect();
        pages.sort_unstable_by_key(|(number, _)| *number);
        pages.into_iter().flat_map(|(number, page)| {
            (0..PAGE).filter_map(move |bit| {
                let seq = number * PAGE + bit;
                Some((seq, page.get(seq)?))
            })
        })
    }

    /// The numbers of all messages, in order.
    #[cfg(test)]
    pub fn seqs(&self) -> Vec<Seq> {
        self.iter().map(|(seq, _)| seq).collect()
    }

    /// Takes out the messages of some page, at most 128 of them; `false` when
    /// there are none left. For freeing a large store in slices; it is of no
    /// other use afterwards.
    pub fn drop_page(&mut self) -> bool {
        let page = self.pages.pop();
        if let Some(page) = &page {
            self.len -= usize::from(page.len);
            self.slots = self.slots.saturating_sub(page.slots.capacity());
        }
        page.is_some()
    }

    /// Bytes allocated, the messages' own included; an estimate within a few
    /// percent. O(1).
    pub fn memory_bytes(&self) -> usize {
        let slots = self.slots * size_of::<Option<Message>>();
        let pages = self.slots / PAGE as usize * size_of::<Page>();
        self.heap_bytes + slots + pages + self.pages.allocation_size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn message(n: u64) -> Message {
        Message::new(None, n.to_string().as_bytes(), n, n)
    }

    proptest! {
        #[test]
        fn behaves_like_a_map(ops in prop::collection::vec((0u8..3, 0u64..2000), 1..800)) {
            let mut store = Store::default();
            let mut model = BTreeMap::new();
            let mut next = 1u64;
            for (op, n) in ops {
                match op {
                    0 | 1 => {
                        next += n % 3;
                        store.insert(next, message(next));
                        model.insert(next, message(next));
                        next += 1;
                    }
                    _ => {
                        let seq = n % next;
                        prop_assert_eq!(store.remove(seq, |m| m.clone()), model.remove(&seq));
                    }
                }
                prop_assert_eq!(store.len(), model.len());
            }
            let all: BTreeMap<Seq, Message> = store.iter().map(|(n, m)| (n, m.clone())).collect();
            prop_assert_eq!(&all, &model);
            for (seq, expected) in &model {
                prop_assert_eq!(store.get(*seq), Some(expected));
            }
            let bytes: usize = model.values().map(Message::heap_bytes).sum();
            prop_assert_eq!(store.heap_bytes, bytes);
        }
    }

    #[test]
    fn a_few_stragglers_do_not_hold_the_memory_of_the_many() {
        let mut store = Store::default();
        for seq in 1..=64_000 {
            store.insert(seq, message(seq));
        }
        for seq in (1..=64_000).filter(|seq| seq % PAGE != 7) {
            store.remove(seq, |_| ());
        }
        assert_eq!(store.len(), 500);
        let pages = store.pages.iter();
        let slots: usize = pages.map(|(_, page)| page.slots.capacity()).sum();
        assert!(slots <= 1000, "{slots} slots for 500 messages");
    }
}
