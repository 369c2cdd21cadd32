//! The store of messages by number.
//!
//! Numbers are assigned in send order, and 128 consecutive ones share a page, so
//! messages that were sent together are together in memory. A page of which most
//! messages are gone is packed, so that a few messages that stay long do not keep
//! the memory of all others. Ids and payloads are stored separately (`bodies.rs`).

mod bodies;
mod chunk;
mod dictionaries;
mod packing;
mod page;
mod stored;
#[cfg(test)]
mod tests;

use super::body::Content;
use super::given::GivenId;
use super::id::Id;
use super::packing::Payload;
use super::Message;
use crate::collections::footprint::allocated;
use crate::collections::number_table::NumberTable;
use crate::collections::rare::Rare;
use crate::{Millis, Seq};
use bodies::Bodies;
use packing::Packing;
use page::{Page, PAGE};

pub use dictionaries::Sums;
pub use packing::{Step, REST};

/// All messages of a queue, by number.
#[derive(Debug, Clone, Default)]
pub struct Store {
    /// Boxed, because half of the table is unused at times.
    pages: NumberTable<Box<Page>>,
    /// Ids and payloads of the messages.
    bodies: Bodies,
    len: usize,
    /// The page of the newest message. It is never packed, since the next messages
    /// are added to it.
    newest: u64,
    /// Bytes that messages have allocated.
    heap_bytes: usize,
    /// Slots of all pages, whether or not they are taken.
    slots: usize,
    /// For messages that replaced others: the time of the first send of that chain (Unix
    /// ms).
    first_sent: Option<Box<NumberTable<Millis>>>,
    /// Which payloads are to be packed. `None` if none are.
    packing: Option<Box<Packing>>,
}

impl Store {
    /// The number of messages. O(1).
    pub fn len(&self) -> usize {
        self.len
    }

    /// The message with this number. O(1).
    #[inline]
    pub fn get(&self, seq: Seq) -> Option<&Message> {
        self.pages.get(seq / PAGE)?.get(seq)
    }

    /// The id and payload of a message of this store. O(1).
    #[inline]
    pub fn content(&self, message: &Message) -> Content<'_> {
        self.bodies.get(message.body, message.given_id_len())
    }

    /// The id that the sender gave the message with this number, if any. O(1).
    #[inline]
    pub fn given_id(&self, seq: Seq) -> Option<Id<'_>> {
        let message = self.get(seq).filter(|message| message.has_given_id())?;
        Some(self.content(message).id?.id())
    }

    /// Whether the sender gave the message with this number this id. O(1).
    #[inline]
    pub fn has_id(&self, seq: Seq, id: &[u8]) -> bool {
        let own = self.given_id(seq);
        own.is_some_and(|own| own.as_bytes() == id)
    }

    /// The message with this number, for changes that allocate and free nothing.
    /// Others must go through [`Store::with`], which counts the memory.
    #[inline]
    pub fn get_mut(&mut self, seq: Seq) -> Option<&mut Message> {
        self.pages.get_mut(seq / PAGE)?.get_mut(seq)
    }

    /// Changes a message and counts the memory that it allocates or frees.
    pub fn with<R>(&mut self, seq: Seq, change: impl FnOnce(&mut Message) -> R) -> Option<R> {
        let message = self.pages.get_mut(seq / PAGE)?.get_mut(seq)?;
        let before = message.heap_bytes();
        let result = change(message);
        let after = message.heap_bytes();
        self.heap_bytes = (self.heap_bytes + after).saturating_sub(before);
        Some(result)
    }

    /// Counts the memory, in bytes, of an extension that was allocated through
    /// [`Store::get_mut`].
    pub fn count_extension(&mut self, bytes: usize) {
        self.heap_bytes += bytes;
    }

    /// Sets when the first send was done (Unix ms) of the chain of sends that ends with
    /// this message, each of which replaced the one before.
    pub fn set_first_sent(&mut self, seq: Seq, at: Millis) {
        if self.get(seq).is_some() {
            self.first_sent.get_or_insert_default().insert(seq, at);
        }
    }

    /// When the first send was done (Unix ms) of the row of sends that this message
    /// ends; `None` if it replaced none.
    pub fn first_sent(&self, seq: Seq) -> Option<Millis> {
        self.first_sent.as_ref()?.get(seq).copied()
    }

    /// Replaces the payload of a message. O(1), apart from copying the bytes.
    pub fn set_payload(&mut self, seq: Seq, payload: &[u8]) {
        let number = seq / PAGE;
        let page = self.pages.get_mut(number);
        let Some(message) = page.and_then(|page| page.get_mut(seq)) else {
            return;
        };
        let id_len = message.given_id_len();
        let id = self.bodies.get(message.body, id_len).id;
        let id = id.map(|id| id.id().to_box());
        let content = Content {
            id: id.as_deref().map(GivenId::Text),
            payload: Payload::Plain(payload),
        };
        self.bodies.remove(message.body, id_len);
        message.body = self.bodies.add(number, content);
        self.rests_again(seq);
        self.tidy();
    }

    /// Adds a message and its content under a number that has none. O(1).
    pub fn insert(&mut self, seq: Seq, mut message: Message, content: Content) {
        let number = seq / PAGE;
        message.body = self.bodies.add(number, content);
        self.heap_bytes += message.heap_bytes();
        self.len += 1;
        match self.pages.get_mut(number) {
            Some(page) => {
                let before = page.capacity();
                page.insert(seq, message);
                self.slots += page.capacity();
                self.slots = self.slots.saturating_sub(before);
            }
            None => {
                let mut page = Box::new(Page::default());
                if self.len as u64 > PAGE {
                    // The queue is not small, so its pages fill up: allocate the
                    // page at once.
                    page.reserve();
                }
                page.insert(seq, message);
                self.slots += page.capacity();
                self.pages.add(number, page);
            }
        }
        if number > self.newest {
            let previous = std::mem::replace(&mut self.newest, number);
            if let Some(packing) = &mut self.packing {
                packing.closed(previous);
            }
            if let Some(page) = self.pages.get_mut(previous) {
                let before = page.capacity();
                page.pack();
                self.slots += page.capacity();
                self.slots = self.slots.saturating_sub(before);
            }
        }
        self.tidy();
    }

    /// Removes a message and returns the value that `last` takes from it. O(1). Moving
    /// the whole message out would cost more.
    pub fn remove<R>(&mut self, seq: Seq, last: impl FnOnce(&mut Message) -> R) -> Option<R> {
        let number = seq / PAGE;
        let page = self.pages.get_mut(number)?;
        let before = page.capacity();
        let (bodies, heap_bytes) = (&mut self.bodies, &mut self.heap_bytes);
        let taken = page.remove(seq, |message| {
            *heap_bytes = heap_bytes.saturating_sub(message.heap_bytes());
            bodies.remove(message.body, message.given_id_len());
            last(message)
        })?;
        if number != self.newest {
            page.pack();
        }
        let after = match number != self.newest && page.len() == 0 {
            true => {
                self.pages.remove(number);
                0
            }
            false => page.capacity(),
        };
        self.slots += after;
        self.slots = self.slots.saturating_sub(before);
        self.len -= 1;
        if let Some(first_sent) = &mut self.first_sent {
            first_sent.remove(seq);
            if first_sent.is_empty() {
                self.first_sent = None;
            }
        }
        self.tidy();
        Some(taken)
    }

    /// Empties one chunk of bodies, if there are too many holes. One is enough,
    /// since every removal calls this.
    #[inline]
    fn tidy(&mut self) {
        let Some(thin) = self.bodies.take_thin() else {
            return;
        };
        for number in &thin.pages {
            let Some(page) = self.pages.get_mut(*number) else {
                continue;
            };
            let messages = page.iter_mut();
            for message in messages.filter(|m| m.body.is_among_others_of(thin.number)) {
                let id_len = message.given_id_len();
                message.body = self.bodies.transfer(&thin, *number, message.body, id_len);
            }
        }
        self.bodies.release(thin);
    }

    /// All messages in the order of their numbers. O(p log p) to start, where p is
    /// the number of pages, then O(1) each.
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
    #[cfg(any(test, feature = "model"))]
    pub fn seqs(&self) -> Vec<Seq> {
        self.iter().map(|(seq, _)| seq).collect()
    }

    /// Drops one page, which is at most 128 messages, or some chunks of bodies once
    /// no page is left. Returns false when nothing is left. Only for freeing a
    /// large store in slices: it must not be used for anything else afterwards.
    pub fn drop_page(&mut self) -> bool {
        let Some(page) = self.pages.pop() else {
            return self.bodies.drop_some();
        };
        self.len -= page.len();
        self.slots = self.slots.saturating_sub(page.capacity());
        true
    }

    /// Bytes allocated, including the messages themselves. An estimate within a few
    /// percent. O(1).
    pub fn memory_bytes(&self) -> usize {
        let slots = self.slots * size_of::<Option<Message>>();
        let pages = self.slots.div_ceil(PAGE as usize) * allocated(size_of::<Page>());
        let bodies = self.bodies.memory_bytes();
        let packing = self.packing.as_ref();
        let packing = packing.map_or(0, |packing| packing.memory_bytes());
        let first_sent = self.first_sent.as_ref();
        let first_sent = first_sent.map_or(0, |first_sent| first_sent.allocation_size());
        self.heap_bytes
            + first_sent
            + slots
            + pages
            + self.pages.allocation_size()
            + bodies
            + packing
    }
}

/// A queue that had no message yet has none to find.
impl Rare<Store> {
    /// As [`Store::get`].
    #[inline]
    pub fn get(&self, seq: Seq) -> Option<&Message> {
        self.used()?.get(seq)
    }

    /// As [`Store::get_mut`].
    #[inline]
    pub fn get_mut(&mut self, seq: Seq) -> Option<&mut Message> {
        self.used_mut()?.get_mut(seq)
    }
}
