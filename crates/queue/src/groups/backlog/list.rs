//! The compact form of a backlog: a few plain messages in one list, twelve bytes
//! each.
//!
//! Most groups have few pending messages, so this form decides what a group costs.

use prefetch_index::prefetch_index;

use super::pending::Order;
use super::Member;
use crate::collections::footprint::allocated;
use crate::index::order_key::OrderKey;
use crate::message::score::Score;
use crate::message::state::StoredState;
use crate::{Millis, Seq, IS_SMALL};

/// Maximum length of a list. Insertion and removal shift the entries behind, which
/// takes too long in a longer one.
const MOST: usize = if IS_SMALL { 4 } else { 64 };

/// The capacities that a list may have. They are the numbers of entries that fill
/// the allocator's size classes: 48, 128, 192, 256 ... bytes.
const ROOMS: [usize; 9] = [4, 10, 16, 21, 26, 32, 42, 53, 64];

/// The smallest capacity in [`ROOMS`] for `len` entries.
fn roomy(len: usize) -> usize {
    let rooms = ROOMS.into_iter();
    rooms.filter(|room| *room >= len).min().unwrap_or(len)
}

/// A message of a list: its due time and its number, 48 bits each. The fields are
/// in such an order that comparing entries compares due time, then number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    due: u32,
    due_and_seq: u32,
    seq: u32,
}

impl Entry {
    /// Packs a message. `None` if one of the numbers needs more than 48 bits.
    fn new(due: Millis, seq: Seq) -> Option<Entry> {
        const END: u64 = 1 << 48;
        (due < END && seq < END).then_some(Entry {
            due: (due >> 16) as u32,
            due_and_seq: (due << 16) as u32 | (seq >> 32) as u32,
            seq: seq as u32,
        })
    }

    /// When the message is due.
    pub fn due(self) -> Millis {
        u64::from(self.due) << 16 | u64::from(self.due_and_seq >> 16)
    }

    fn latest(self) -> Latest {
        let low = self.due_and_seq >> 16;
        [(self.due >> 16) as u16, self.due as u16, low as u16]
    }

    /// The message's number.
    pub fn seq(self) -> Seq {
        u64::from(self.due_and_seq & 0xffff) << 32 | u64::from(self.seq)
    }

    /// The message's position in the order of a group whose messages all have this
    /// `priority`.
    pub fn key(self, priority: i8) -> OrderKey {
        OrderKey::new(priority, Score::of_time(self.due()), self.seq())
    }
}

/// A few messages of one priority in the order of their due times, none of which
/// has failed.
///
/// The order of the group is the order of due times, as it is for all messages that
/// were sent without a score of their own. An operation that the list cannot
/// represent fails with [`Unfit`] and changes nothing.
#[derive(Debug, Clone, Default)]
pub struct List {
    entries: Vec<Entry>,
    /// How many messages at the front are due, as of the last processing of due
    /// events.
    due: u8,
    priority: i8,
    /// An upper bound of all due times. A message with a later one goes to the end,
    /// which is known without reading the entries: that read would be a cache miss.
    latest: Latest,
}

/// A due time as in [`Entry`]: 48 bits, the most significant 16 first.
type Latest = [u16; 3];

/// The error of an operation that a list cannot represent.
pub struct Unfit;

impl List {
    /// Whether the list has no messages.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The messages that are not due yet.
    pub fn ahead(&self) -> Order<'_> {
        self.order(self.entries.get(self.due()..))
    }

    /// The messages that are due.
    pub fn due_ones(&self) -> Order<'_> {
        self.order(self.entries.get(..self.due()))
    }

    fn order<'a>(&self, entries: Option<&'a [Entry]>) -> Order<'a> {
        Order::Few {
            entries: entries.unwrap_or_default(),
            priority: self.priority,
        }
    }

    fn due(&self) -> usize {
        usize::from(self.due)
    }

    /// Prefetches the memory behind the last entry, where the next message usually
    /// goes. O(1). Changes nothing.
    #[inline]
    pub fn expect_one(&self) {
        prefetch_index(&self.entries, self.entries.len());
    }

    /// Inserts a message. Returns how many messages are before it. O(1) at the end,
    /// else O(length), which is small.
    pub fn insert(&mut self, stored: StoredState, member: Member) -> Result<usize, Unfit> {
        if self.is_empty() {
            self.priority = member.key.priority();
        }
        let entry = self.entry(&member).ok_or(Unfit)?;
        let latest = entry.latest();
        let is_last = latest > self.latest || self.entries.last().is_none_or(|last| *last < entry);
        let at = match is_last {
            true => self.entries.len(),
            false => self.entries.partition_point(|other| *other < entry),
        };
        let fits = match stored {
            StoredState::Due => at <= self.due(),
            StoredState::Delayed => at >= self.due(),
            _ => false,
        };
        if !fits || member.failed || self.entries.len() >= MOST {
            return Err(Unfit);
        }
        let len = self.entries.len();
        if len == self.entries.capacity() {
            self.entries.reserve_exact(roomy(len + 1) - len);
        }
        self.entries.insert(at, entry);
        self.latest = self.latest.max(latest);
        self.due += u8::from(stored == StoredState::Due);
        Ok(at)
    }

    /// Removes a message.
    pub fn remove(&mut self, member: Member) {
        let Some(at) = self.find(&member) else {
            debug_assert!(false, "no list has the message {}", member.key.seq());
            return;
        };
        self.entries.remove(at);
        self.due -= u8::from(at < self.due());
        self.trim();
    }

    /// Marks a message as due. Fails unless it is the first one that is not due
    /// yet.
    pub fn promote(&mut self, member: Member) -> Result<(), Unfit> {
        if self.find(&member) != Some(self.due()) {
            return Err(Unfit);
        }
        self.due += 1;
        Ok(())
    }

    /// Bytes allocated. O(1).
    pub fn memory_bytes(&self) -> usize {
        allocated(self.entries.capacity() * size_of::<Entry>())
    }

    fn entry(&self, member: &Member) -> Option<Entry> {
        let entry = Entry::new(member.due, member.key.seq())?;
        (entry.key(self.priority) == member.key).then_some(entry)
    }

    fn find(&self, member: &Member) -> Option<usize> {
        let entry = self.entry(member)?;
        match self.entries.first() {
            Some(first) if *first == entry => Some(0),
            _ => self.entries.binary_search(&entry).ok(),
        }
    }

    /// Shrinks the list if less than half of its capacity is used.
    fn trim(&mut self) {
        let len = self.entries.len();
        if len == 0 {
            *self = List::default();
        } else if len * 2 < self.entries.capacity() {
            self.entries.shrink_to(roomy(len + 1));
        }
    }
}
