//! What is kept of messages that have ended.

use std::sync::Arc;

use super::id::{hash_name, NameHasher};
use super::long_list::LongList;
use super::name_table::NameTable;
use super::order_key::OrderKey;
use super::ordered::OrderedSet;
use super::state::Place;
use super::{Millis, Seq, TimeIndex};

/// Messages by priority, then in the order of sending.
pub type SendOrder = OrderedSet<(i8, Seq)>;

/// A record as the indexes know it.
#[derive(Debug, Clone, Copy)]
pub struct Record {
    /// Its number.
    pub seq: Seq,
    /// When it ended.
    pub ended_at: Millis,
    /// Lower goes first, should it be redriven.
    pub priority: i8,
    /// Whether it has a group.
    pub grouped: bool,
}

/// The ended messages that are kept, by the time they ended.
#[derive(Debug, Clone, Default)]
pub struct Records {
    /// Acked ones.
    pub finished: TimeIndex,
    /// Cancelled ones.
    pub cancelled: TimeIndex,
    /// Dead ones.
    pub dead: TimeIndex,
    /// The dead ones in the order in which a redrive of all would give them.
    pub dead_order: DeadOrder,
    /// Ids that stay taken though their records are gone.
    pub dedup: DedupMemory,
    /// How many of all have a group, purged ones that are not freed yet
    /// included.
    pub grouped: usize,
}

/// Dead messages in the order of delivery that a redrive would give them.
#[derive(Debug, Clone, Default)]
pub struct DeadOrder {
    /// Those without a group.
    pub plain: SendOrder,
    /// Those of groups.
    pub grouped: SendOrder,
}

impl DeadOrder {
    /// The one of these that a record belongs to.
    pub fn of(&self, record: &Record) -> &SendOrder {
        match record.grouped {
            true => &self.grouped,
            false => &self.plain,
        }
    }

    /// The same, to change.
    pub fn of_mut(&mut self, record: &Record) -> &mut SendOrder {
        match record.grouped {
            true => &mut self.grouped,
            false => &mut self.plain,
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.plain.len() + self.grouped.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes allocated.
    pub fn memory_bytes(&self) -> usize {
        self.plain.memory_bytes() + self.grouped.memory_bytes()
    }
}

impl Records {
    /// Enters a record at the place of an ended message.
    pub fn insert(&mut self, place: Place, record: Record) {
        if let Some(index) = self.at_mut(place) {
            index.insert((record.ended_at, record.seq), ());
        }
        self.grouped += usize::from(record.grouped);
        if place == Place::Dead {
            let order = self.dead_order.of_mut(&record);
            order.insert((record.priority, record.seq), ());
        }
    }

    /// Takes a record out; whether it was there.
    pub fn remove(&mut self, place: Place, record: Record) -> bool {
        if place == Place::Dead {
            let order = self.dead_order.of_mut(&record);
            order.remove(&(record.priority, record.seq));
        }
        self.grouped = self.grouped.saturating_sub(usize::from(record.grouped));
        let index = self.at_mut(place);
        index.is_some_and(|index| index.remove(&(record.ended_at, record.seq)).is_some())
    }

    /// The index for this place, which must be one of an ended message.
    pub fn at(&self, place: Place) -> Option<&TimeIndex> {
        match place {
            Place::Finished => Some(&self.finished),
            Place::Cancelled => Some(&self.cancelled),
            Place::Dead => Some(&self.dead),
            _ => None,
        }
    }

    /// The same, to change.
    pub fn at_mut(&mut self, place: Place) -> Option<&mut TimeIndex> {
        match place {
            Place::Finished => Some(&mut self.finished),
            Place::Cancelled => Some(&mut self.cancelled),
            Place::Dead => Some(&mut self.dead),
            _ => None,
        }
    }

    /// The finished or cancelled one that ended first: when, and which.
    pub fn oldest_settled(&self) -> Option<(Millis, Seq)> {
        let first = |index: &TimeIndex| index.first().map(|(key, ())| key);
        match (first(&self.finished), first(&self.cancelled)) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// The dead one that died first.
    pub fn oldest_dead(&self) -> Option<(Millis, Seq)> {
        self.dead.first().map(|(key, ())| key)
    }

    /// Bytes allocated.
    pub fn memory_bytes(&self) -> usize {
        self.finished.memory_bytes()
            + self.cancelled.memory_bytes()
            + self.dead.memory_bytes()
            + self.dead_order.memory_bytes()
            + self.dedup.memory_bytes()
    }
}

/// The records of one group, in its order.
#[derive(Debug, Clone, Default)]
pub struct GroupRecords {
    finished: OrderedSet<OrderKey>,
    dead: OrderedSet<OrderKey>,
    cancelled: OrderedSet<OrderKey>,
}

impl GroupRecords {
    /// None; allocates nothing.
    pub const fn new() -> GroupRecords {
        GroupRecords {
            finished: OrderedSet::new(),
            dead: OrderedSet::new(),
            cancelled: OrderedSet::new(),
        }
    }

    /// Those at this place, which must be one of an ended message.
    pub fn at(&self, place: Place) -> Option<&OrderedSet<OrderKey>> {
        match place {
            Place::Finished => Some(&self.finished),
            Place::Dead => Some(&self.dead),
            Place::Cancelled => Some(&self.cancelled),
            _ => None,
        }
    }

    /// The same, to change.
    pub fn at_mut(&mut self, place: Place) -> Option<&mut OrderedSet<OrderKey>> {
        match place {
            Place::Finished => Some(&mut self.finished),
            Place::Dead => Some(&mut self.dead),
            Place::Cancelled => Some(&mut self.cancelled),
            _ => None,
        }
    }

    /// Where more than `most` are at any place, drops about so many; whether they
    /// were.
    pub fn drain_many(&mut self, most: usize) -> bool {
        let mut orders = [&mut self.finished, &mut self.dead, &mut self.cancelled].into_iter();
        orders.any(|order| order.drain_many(most))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.finished.is_empty() && self.dead.is_empty() && self.cancelled.is_empty()
    }
}

/// Ids of messages that have ended and left no record.
#[derive(Debug, Clone, Default)]
pub struct DedupMemory {
    hasher: NameHasher,
    /// Ids, and when the messages that had them ended.
    by_id: NameTable<(Arc<[u8]>, Millis)>,
    /// Roughly by the time they ended: what is forgotten late costs memory for
    /// a moment, never a wrong answer. Each id is in it once.
    by_end: LongList<(Millis, Arc<[u8]>)>,
}

impl DedupMemory {
    /// When the message that had this id ended, if it is remembered.
    pub fn ended_at(&self, id: &[u8]) -> Option<Millis> {
        let hash = hash_name(&self.hasher, id);
        let found = self.by_id.find(hash, |(other, _)| **other == *id);
        found.map(|(_, ended_at)| *ended_at)
    }

    /// Remembers an id.
    pub fn remember(&mut self, id: &[u8], ended_at: Millis) {
        let hash = hash_name(&self.hasher, id);
        let known = self.by_id.find_mut(hash, |(other, _)| **other == *id);
        let id: Arc<[u8]> = if let Some((known, at)) = known {
            *at = ended_at;
            let id = known.clone();
            // It was free again but not forgotten yet, which is rare.
            self.by_end.retain(|(_, other)| *other != id);
            id
        } else {
            let id = Arc::from(id);
            self.by_id.insert_unique(hash, (Arc::clone(&id), ended_at));
            id
        };
        self.by_end.push_back((ended_at, id));
    }

    /// When the message ended whose id is to be forgotten next.
    pub fn oldest(&self) -> Option<Millis> {
        self.by_end.front().map(|(ended_at, _)| *ended_at)
    }

    /// Forgets the id that is to be forgotten next.
    pub fn forget_oldest(&mut self) {
        if let Some((_, id)) = self.by_end.pop_front() {
            let hash = hash_name(&self.hasher, &id);
            self.by_id.remove(hash, |(other, _)| *other == id);
        }
    }

    /// Forgets up to `most` ids, in the order it would; how many.
    pub fn drain_some(&mut self, most: usize) -> usize {
        let before = self.by_end.len();
        for _ in 0..most.min(before) {
            self.forget_oldest();
        }
        before - self.by_end.len()
    }

    /// Forgets all ids that ended `window` ms before `now` or earlier. O(n).
    pub fn forget_all(&mut self, now: Millis, window: Millis) {
        let gone = |ended_at: Millis| ended_at.saturating_add(window) <= now;
        self.by_id.retain(|(_, ended_at)| !gone(*ended_at));
        self.by_end.retain(|(ended_at, _)| !gone(*ended_at));
    }

    /// What is remembered, in the order it was entered.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = (&[u8], Millis)> + '_ {
        self.by_end.iter().map(|(ended_at, id)| (&**id, *ended_at))
    }

    /// Bytes allocated, roughly.
    pub fn memory_bytes(&self) -> usize {
        self.by_id.allocation_size() + self.by_end.memory_bytes() + self.by_end.len() * 56
    }
}
