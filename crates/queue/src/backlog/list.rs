//! The few messages of a usual group, in twelve bytes each.

use prefetch_index::prefetch_index;

use super::orders::GroupOrder;
use super::pending::Order;
use super::Member;
use crate::footprint::allocated;
use crate::order_key::OrderKey;
use crate::ordered::MinTime;
use crate::state::Place;
use crate::{Millis, Seq, IS_SMALL};

/// A list of more would take long to shift.
const MOST: usize = if IS_SMALL { 4 } else { 64 };

/// So many entries a list has room for: what allocations of 48, 128, 192, 256 ...
/// bytes hold.
const ROOMS: [usize; 9] = [4, 10, 16, 21, 26, 32, 42, 53, 64];

/// Room for so many entries, and maybe some to come.
fn roomy(len: usize) -> usize {
    let rooms = ROOMS.into_iter();
    rooms.filter(|room| *room >= len).min().unwrap_or(len)
}

/// A message of a list: its due time and its number, 48 bits each, so that
/// entries compare as messages stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    due: u32,
    due_and_seq: u32,
    seq: u32,
}

impl Entry {
    /// `None` where one of the numbers needs more bits.
    fn new(due: Millis, seq: Seq) -> Option<Entry> {
        const END: u64 = 1 << 48;
        (due < END && seq < END).then_some(Entry {
            due: (due >> 16) as u32,
            due_and_seq: (due << 16) as u32 | (seq >> 32) as u32,
            seq: seq as u32,
        })
    }

    /// When it is due.
    pub fn due(self) -> Millis {
        u64::from(self.due) << 16 | u64::from(self.due_and_seq >> 16)
    }

    fn latest(self) -> Latest {
        let low = self.due_and_seq >> 16;
        [(self.due >> 16) as u16, self.due as u16, low as u16]
    }

    /// Its number.
    pub fn seq(self) -> Seq {
        u64::from(self.due_and_seq & 0xffff) << 32 | u64::from(self.seq)
    }

    /// Its place in the order of a group, all of which has this priority.
    pub fn key(self, priority: i8) -> OrderKey {
        OrderKey::new(priority, self.due() as f64, self.seq())
    }
}

/// Some messages of one priority that stand in the order of their due times, as
/// all do that were sent without a score of their own; none has failed.
///
/// What it can't hold, it doesn't take, and nothing changes then.
#[derive(Debug, Clone, Default)]
pub struct List {
    entries: Vec<Entry>,
    /// Payload bytes of those that are not due yet.
    ahead_bytes: u32,
    /// The same of those that are.
    due_bytes: u32,
    /// So many at the front are due, as far as time was worked off.
    due: u8,
    priority: i8,
    /// None is due after this time: what comes behind all others need not look at
    /// them, which would be to wait for memory.
    latest: Latest,
}

/// A time of an [`Entry`] in six bytes, the high half first.
type Latest = [u16; 3];

/// A list can't hold what was asked of it.
pub struct Unfit;

impl List {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Those that are not due yet.
    pub fn ahead(&self) -> Order<'_> {
        self.order(self.entries.get(self.due()..))
    }

    /// Those that are.
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

    /// Payload bytes of those at this place.
    pub fn bytes_at(&self, place: Place) -> u64 {
        match place {
            Place::Delayed => self.ahead_bytes.into(),
            Place::Due => self.due_bytes.into(),
            _ => 0,
        }
    }

    /// Asks for the memory where one goes that comes behind all others. O(1), and
    /// changes nothing.
    #[inline]
    pub fn expect_one(&self) {
        prefetch_index(&self.entries, self.entries.len());
    }

    /// Enters a message; how many stand before it. O(1) behind all others.
    pub fn insert(&mut self, place: Place, member: Member) -> Result<usize, Unfit> {
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
        let fits = match place {
            Place::Due => at <= self.due(),
            Place::Delayed => at >= self.due(),
            _ => false,
        };
        if !fits || member.failed || self.entries.len() >= MOST {
            return Err(Unfit);
        }
        self.count(place, 0, member.size)?;
        let len = self.entries.len();
        if len == self.entries.capacity() {
            self.entries.reserve_exact(roomy(len + 1) - len);
        }
        self.entries.insert(at, entry);
        self.latest = self.latest.max(latest);
        self.due += u8::from(place == Place::Due);
        Ok(at)
    }

    /// Takes a message out, if it is there.
    pub fn remove(&mut self, place: Place, member: Member) {
        let Some(at) = self.find(&member) else {
            return;
        };
        self.entries.remove(at);
        self.due -= u8::from(at < self.due());
        self.uncount(place, member.size);
        self.trim();
    }

    /// Takes out all at this place, and their payload bytes.
    pub fn take(&mut self, place: Place) -> ([GroupOrder; 2], u64) {
        let due = self.due();
        let (range, bytes) = match place {
            Place::Due => (0..due, &mut self.due_bytes),
            Place::Delayed => (due..self.entries.len(), &mut self.ahead_bytes),
            _ => return Default::default(),
        };
        let bytes = std::mem::take(bytes);
        let taken = self.entries.drain(range);
        let taken = taken.map(|entry| (entry.key(self.priority), MinTime(entry.due())));
        let order = GroupOrder::from_sorted(taken);
        if place == Place::Due {
            self.due = 0;
        }
        self.trim();
        ([order, GroupOrder::new()], bytes.into())
    }

    /// A message's time has come.
    pub fn promote(&mut self, member: Member) -> Result<(), Unfit> {
        if self.find(&member) != Some(self.due()) {
            return Err(Unfit);
        }
        self.count(Place::Due, 0, member.size)?;
        self.uncount(Place::Delayed, member.size);
        self.due += 1;
        Ok(())
    }

    /// Counts the payload bytes at a place that were so many before and are so
    /// many after.
    pub fn count(&mut self, place: Place, before: u64, after: u64) -> Result<(), Unfit> {
        let bytes = self.bytes_mut(place).ok_or(Unfit)?;
        let counted = (u64::from(*bytes) + after).saturating_sub(before);
        *bytes = u32::try_from(counted).map_err(|_| Unfit)?;
        Ok(())
    }

    fn uncount(&mut self, place: Place, size: u64) {
        if let Some(bytes) = self.bytes_mut(place) {
            *bytes = u64::from(*bytes).saturating_sub(size) as u32;
        }
    }

    fn bytes_mut(&mut self, place: Place) -> Option<&mut u32> {
        match place {
            Place::Delayed => Some(&mut self.ahead_bytes),
            Place::Due => Some(&mut self.due_bytes),
            _ => None,
        }
    }

    /// Bytes allocated.
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

    /// Gives memory back once more than half of it is unused.
    fn trim(&mut self) {
        let len = self.entries.len();
        if len == 0 {
            *self = List::default();
        } else if len * 2 < self.entries.capacity() {
            self.entries.shrink_to(roomy(len + 1));
        }
    }
}
