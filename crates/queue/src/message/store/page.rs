//! A page of the store: the messages of 128 consecutive numbers.

use crate::message::Message;
use crate::Seq;

/// How many consecutive numbers belong to a page.
pub(super) const PAGE: u64 = 128;
/// A page with at most this many messages is packed.
const THIN: u8 = 24;

#[derive(Debug, Clone, Default)]
pub(super) struct Page {
    /// A bit for each of the 128 numbers that has a message.
    present: u128,
    /// One slot for each number; if packed, one for each message, in order.
    slots: Vec<Option<Message>>,
    /// The number of messages, to save counting the bits.
    len: u8,
    packed: bool,
    /// Whether packing of payloads has passed the page.
    pub(super) is_swept: bool,
}

impl Page {
    fn bit(seq: Seq) -> u128 {
        1 << (seq % PAGE)
    }

    /// The slot of a number. `None` if the page is packed and has no message with
    /// it.
    #[inline]
    fn index(&self, seq: Seq) -> Option<usize> {
        match self.packed {
            true => self.packed_index(seq),
            false => Some((seq % PAGE) as usize),
        }
    }

    fn packed_index(&self, seq: Seq) -> Option<usize> {
        let bit = Page::bit(seq);
        let is_there = self.present & bit != 0;
        is_there.then(|| (self.present & (bit - 1)).count_ones() as usize)
    }

    #[inline]
    pub(super) fn get(&self, seq: Seq) -> Option<&Message> {
        self.slots.get(self.index(seq)?)?.as_ref()
    }

    #[inline]
    pub(super) fn get_mut(&mut self, seq: Seq) -> Option<&mut Message> {
        let index = self.index(seq)?;
        self.slots.get_mut(index)?.as_mut()
    }

    pub(super) fn insert(&mut self, seq: Seq, message: Message) {
        if self.packed {
            self.unpack();
        }
        let index = (seq % PAGE) as usize;
        if self.slots.len() < index {
            self.slots.resize_with(index, || None);
        }
        match self.slots.get_mut(index) {
            Some(slot) => *slot = Some(message),
            None => {
                if self.slots.len() == self.slots.capacity() {
                    self.make_room();
                }
                self.slots.push(Some(message));
            }
        }
        self.present |= Page::bit(seq);
        self.len += 1;
    }

    /// Makes room for one more slot. A list that doubles would be half empty in most of the very
    /// many queues that have a few messages.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self) {
        let len = self.slots.len();
        let left = (PAGE as usize).saturating_sub(len).max(1);
        self.slots.reserve_exact((len / 4).max(2).min(left));
    }

    /// Removes a message and returns the value that `last` takes from it.
    #[inline]
    pub(super) fn remove<R>(
        &mut self,
        seq: Seq,
        last: impl FnOnce(&mut Message) -> R,
    ) -> Option<R> {
        let index = self.index(seq)?;
        let slot = self.slots.get_mut(index)?;
        let taken = last(slot.as_mut()?);
        if self.packed {
            self.slots.remove(index);
            if self.slots.len() * 2 <= self.slots.capacity() {
                self.slots.shrink_to_fit();
            }
        } else {
            *slot = None;
        }
        self.present &= !Page::bit(seq);
        self.len -= 1;
        Some(taken)
    }

    /// The number of messages.
    pub(super) fn len(&self) -> usize {
        self.len.into()
    }

    /// The number of slots, whether or not they are taken.
    pub(super) fn capacity(&self) -> usize {
        self.slots.capacity()
    }

    /// Allocates all slots, for a page that will fill up.
    pub(super) fn reserve(&mut self) {
        self.slots.reserve_exact(PAGE as usize);
    }

    /// All messages of the page, for changes.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Message> + '_ {
        self.slots.iter_mut().flatten()
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

    pub(super) fn pack(&mut self) {
        if !self.packed && self.len <= THIN {
            let mut slots = Vec::with_capacity(usize::from(self.len));
            slots.extend(self.slots.drain(..).filter(Option::is_some));
            self.slots = slots;
            self.packed = true;
        }
    }
}
