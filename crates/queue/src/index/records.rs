//! Records: messages that have ended and are kept for inspection, redrive or
//! deduplication.

use std::sync::Arc;

use super::order_key::OrderKey;
use crate::collections::long_list::LongList;
use crate::collections::name_table::NameTable;
use crate::collections::ordered::OrderedSet;
use crate::message::id::{hash_name, NameHasher};
use crate::message::state::StoredState;
use crate::{Millis, Seq, TimeIndex};

/// The properties of a record that its indexes need.
#[derive(Debug, Clone, Copy)]
pub struct Record {
    /// The message's number.
    pub seq: Seq,
    /// When it ended.
    pub ended_at: Millis,
    /// Whether it has a group.
    pub grouped: bool,
}

/// The records of a queue, by the time at which they ended.
#[derive(Debug, Clone, Default)]
pub struct Records {
    /// Acked messages.
    pub finished: TimeIndex,
    /// Cancelled messages.
    pub cancelled: TimeIndex,
    /// Dead messages.
    pub dead: TimeIndex,
    /// Ids that are still taken though their records are gone.
    pub dedup: DedupMemory,
    /// How many of all have a group.
    pub grouped: usize,
}

impl Records {
    /// Adds a record in the stored state of an ended message. O(log n).
    pub fn insert(&mut self, stored: StoredState, record: Record) {
        if let Some(index) = self.at_mut(stored) {
            index.insert((record.ended_at, record.seq), ());
        }
        self.grouped += usize::from(record.grouped);
    }

    /// Takes out a record.
    pub fn remove(&mut self, stored: StoredState, record: Record) {
        let grouped = usize::from(record.grouped);
        debug_assert!(self.grouped >= grouped, "records of groups are miscounted");
        self.grouped = self.grouped.saturating_sub(grouped);
        let index = self.at_mut(stored);
        let known = index.and_then(|index| index.remove(&(record.ended_at, record.seq)));
        debug_assert!(known.is_some(), "no index has the record {}", record.seq);
    }

    /// The index for a stored state; `None` unless it is one of ended messages.
    pub fn at(&self, stored: StoredState) -> Option<&TimeIndex> {
        match stored {
            StoredState::Finished => Some(&self.finished),
            StoredState::Cancelled => Some(&self.cancelled),
            StoredState::Dead => Some(&self.dead),
            _ => None,
        }
    }

    /// The index for a stored state, for changes; `None` unless it is one of ended
    /// messages.
    pub fn at_mut(&mut self, stored: StoredState) -> Option<&mut TimeIndex> {
        match stored {
            StoredState::Finished => Some(&mut self.finished),
            StoredState::Cancelled => Some(&mut self.cancelled),
            StoredState::Dead => Some(&mut self.dead),
            _ => None,
        }
    }

    /// The finished or cancelled message that ended first: when, and its number.
    pub fn oldest_settled(&self) -> Option<(Millis, Seq)> {
        let first = |index: &TimeIndex| index.first().map(|(key, ())| key);
        match (first(&self.finished), first(&self.cancelled)) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// The dead message that died first: when, and its number.
    pub fn oldest_dead(&self) -> Option<(Millis, Seq)> {
        self.dead.first().map(|(key, ())| key)
    }

    /// The indexes, for freeing.
    pub fn into_indexes(self) -> [TimeIndex; 3] {
        [self.finished, self.cancelled, self.dead]
    }

    /// Bytes allocated. O(1).
    pub fn memory_bytes(&self) -> usize {
        self.finished.memory_bytes()
            + self.cancelled.memory_bytes()
            + self.dead.memory_bytes()
            + self.dedup.memory_bytes()
    }
}

/// The records of one group, in the order of the group.
#[derive(Debug, Clone, Default)]
pub struct GroupRecords {
    finished: OrderedSet<OrderKey>,
    dead: OrderedSet<OrderKey>,
    cancelled: OrderedSet<OrderKey>,
}

impl GroupRecords {
    /// No records. Allocates nothing.
    pub const fn new() -> GroupRecords {
        GroupRecords {
            finished: OrderedSet::new(),
            dead: OrderedSet::new(),
            cancelled: OrderedSet::new(),
        }
    }

    /// The records in a stored state; `None` unless it is one of ended messages.
    pub fn at(&self, stored: StoredState) -> Option<&OrderedSet<OrderKey>> {
        match stored {
            StoredState::Finished => Some(&self.finished),
            StoredState::Dead => Some(&self.dead),
            StoredState::Cancelled => Some(&self.cancelled),
            _ => None,
        }
    }

    /// The records in a stored state, for changes; `None` unless it is one of ended
    /// messages.
    pub fn at_mut(&mut self, stored: StoredState) -> Option<&mut OrderedSet<OrderKey>> {
        match stored {
            StoredState::Finished => Some(&mut self.finished),
            StoredState::Dead => Some(&mut self.dead),
            StoredState::Cancelled => Some(&mut self.cancelled),
            _ => None,
        }
    }

    /// If there are more than `most` records in one state, drops about `most` of
    /// them. Returns whether it did. For freeing in slices.
    pub fn drain_many(&mut self, most: usize) -> bool {
        let mut orders = [&mut self.finished, &mut self.dead, &mut self.cancelled].into_iter();
        orders.any(|order| order.drain_many(most))
    }

    /// Whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.finished.is_empty() && self.dead.is_empty() && self.cancelled.is_empty()
    }
}

/// The ids of messages that have ended and left no record, remembered for the DEDUP
/// option.
#[derive(Debug, Clone, Default)]
pub struct DedupMemory {
    hasher: NameHasher,
    /// The ids, and when their messages ended.
    by_id: NameTable<(Arc<[u8]>, Millis)>,
    /// The same ids, roughly by the time at which their messages ended. An id that
    /// is forgotten late costs memory for a while, never a wrong answer. Each id is
    /// in the list once.
    by_end: LongList<(Millis, Arc<[u8]>)>,
}

impl DedupMemory {
    /// When the message with this id ended, if the id is remembered. O(1).
    pub fn ended_at(&self, id: &[u8]) -> Option<Millis> {
        let hash = hash_name(&self.hasher, id);
        let found = self.by_id.find(hash, |(other, _)| **other == *id);
        found.map(|(_, ended_at)| *ended_at)
    }

    /// Remembers an id, or updates when its message ended. O(1) if it is new.
    pub fn remember(&mut self, id: &[u8], ended_at: Millis) {
        let hash = hash_name(&self.hasher, id);
        let known = self.by_id.find_mut(hash, |(other, _)| **other == *id);
        let id: Arc<[u8]> = if let Some((known, at)) = known {
            *at = ended_at;
            let id = known.clone();
            // Rare: the id was no longer taken, but not forgotten yet. O(n).
            self.by_end.retain(|(_, other)| *other != id);
            id
        } else {
            let id = Arc::from(id);
            self.by_id.insert_unique(hash, (Arc::clone(&id), ended_at));
            id
        };
        self.by_end.push_back((ended_at, id));
    }

    /// When the message ended whose id is forgotten next. O(1).
    pub fn oldest(&self) -> Option<Millis> {
        self.by_end.front().map(|(ended_at, _)| *ended_at)
    }

    /// Forgets the id that has been remembered longest. O(1).
    pub fn forget_oldest(&mut self) {
        if let Some((_, id)) = self.by_end.pop_front() {
            let hash = hash_name(&self.hasher, &id);
            self.by_id.remove(hash, |(other, _)| *other == id);
        }
    }

    /// Forgets up to `most` ids, the oldest first. Returns how many.
    pub fn drain_some(&mut self, most: usize) -> usize {
        let before = self.by_end.len();
        for _ in 0..most.min(before) {
            self.forget_oldest();
        }
        before - self.by_end.len()
    }

    /// Forgets all ids whose messages ended at least `window` ms before `now`.
    /// O(n).
    pub fn forget_all(&mut self, now: Millis, window: Millis) {
        let gone = |ended_at: Millis| ended_at.saturating_add(window) <= now;
        self.by_id.retain(|(_, ended_at)| !gone(*ended_at));
        self.by_end.retain(|(ended_at, _)| !gone(*ended_at));
    }

    /// The ids and when their messages ended, in the order in which they were
    /// remembered.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = (&[u8], Millis)> + '_ {
        self.by_end.iter().map(|(ended_at, id)| (&**id, *ended_at))
    }

    /// Bytes allocated, an estimate. O(1).
    pub fn memory_bytes(&self) -> usize {
        self.by_id.allocation_size() + self.by_end.memory_bytes() + self.by_end.len() * 56
    }
}
