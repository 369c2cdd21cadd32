//! Records: messages that have ended and are kept for inspection, redrive or
//! deduplication.

use std::sync::Arc;

use super::order_key::OrderKey;
use crate::collections::footprint::allocated;
use crate::collections::long_list::LongList;
use crate::collections::name_table::NameTable;
use crate::collections::ordered::OrderedSet;
use crate::collections::rare::{unused, Rare};
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
    /// When its own RETAIN ends (Unix ms), if it has one.
    pub own_end: Option<Millis>,
}

/// The records of one state that have a RETAIN of their own.
#[derive(Debug, Clone, Default)]
pub struct OwnRetained {
    /// The records by the time at which they ended.
    pub by_time: TimeIndex,
    /// The records by the time at which their RETAIN ends.
    pub by_end: TimeIndex,
}

/// The finished and the cancelled records that have a RETAIN of their own.
#[derive(Debug, Clone, Default)]
pub struct Own {
    /// Acked messages.
    pub finished: OwnRetained,
    /// Cancelled messages.
    pub cancelled: OwnRetained,
}

/// The records of a queue, by the time at which they ended.
#[derive(Debug, Clone, Default)]
pub struct Records {
    /// Acked messages without a RETAIN of their own.
    pub finished: TimeIndex,
    /// Cancelled messages without a RETAIN of their own.
    pub cancelled: TimeIndex,
    /// Messages with a RETAIN of their own. `None` where there never was one.
    pub own: Option<Box<Own>>,
    /// Dead messages.
    pub dead: TimeIndex,
    /// Ids that are still taken though their records are gone.
    pub dedup: Rare<DedupMemory>,
    /// The number of records that have a group.
    pub grouped: usize,
}

impl Own {
    fn at(&self, stored: StoredState) -> Option<&OwnRetained> {
        match stored {
            StoredState::Finished => Some(&self.finished),
            StoredState::Cancelled => Some(&self.cancelled),
            _ => None,
        }
    }

    fn at_mut(&mut self, stored: StoredState) -> Option<&mut OwnRetained> {
        match stored {
            StoredState::Finished => Some(&mut self.finished),
            StoredState::Cancelled => Some(&mut self.cancelled),
            _ => None,
        }
    }

    fn memory_bytes(&self) -> usize {
        let both = [&self.finished, &self.cancelled].into_iter();
        both.map(|own| own.by_time.memory_bytes() + own.by_end.memory_bytes())
            .sum()
    }
}

/// The first key of two indexes.
fn earliest(one: &TimeIndex, other: &TimeIndex) -> Option<(Millis, Seq)> {
    let first = |index: &TimeIndex| index.first().map(|(key, ())| key);
    first(one).into_iter().chain(first(other)).min()
}

impl Records {
    /// No records.
    pub const fn new() -> Records {
        Records {
            finished: TimeIndex::new(),
            cancelled: TimeIndex::new(),
            own: None,
            dead: TimeIndex::new(),
            dedup: Rare::UNUSED,
            grouped: 0,
        }
    }

    /// Adds a record in the stored state of an ended message. O(log n).
    pub fn insert(&mut self, stored: StoredState, record: Record) {
        if let Some(end) = record.own_end {
            let own = self.own.get_or_insert_default();
            if let Some(own) = own.at_mut(stored) {
                own.by_time.insert((record.ended_at, record.seq), ());
                own.by_end.insert((end, record.seq), ());
            }
        } else if let Some(index) = self.at_mut(stored) {
            index.insert((record.ended_at, record.seq), ());
        }
        self.grouped += usize::from(record.grouped);
    }

    /// Removes a record. O(log n).
    pub fn remove(&mut self, stored: StoredState, record: Record) {
        let grouped = usize::from(record.grouped);
        debug_assert!(self.grouped >= grouped, "records of groups are miscounted");
        self.grouped = self.grouped.saturating_sub(grouped);
        if let Some(end) = record.own_end {
            let own = self.own.as_mut().and_then(|own| own.at_mut(stored));
            let known = own.and_then(|own| {
                own.by_end.remove(&(end, record.seq));
                own.by_time.remove(&(record.ended_at, record.seq))
            });
            debug_assert!(known.is_some(), "no index has the record {}", record.seq);
            return;
        }
        let index = self.at_mut(stored);
        let known = index.and_then(|index| index.remove(&(record.ended_at, record.seq)));
        debug_assert!(known.is_some(), "no index has the record {}", record.seq);
    }

    /// The indexes by time for a stored state: of the records that the queue's RETAIN
    /// applies to, and of those with their own RETAIN. There are no such indexes unless
    /// it is a state of ended messages.
    pub fn indexes(&self, stored: StoredState) -> impl Iterator<Item = &TimeIndex> {
        let own = self.own.as_ref().and_then(|own| own.at(stored));
        let main = match stored {
            StoredState::Finished => Some(&self.finished),
            StoredState::Cancelled => Some(&self.cancelled),
            StoredState::Dead => Some(&self.dead),
            _ => None,
        };
        main.into_iter().chain(own.map(|own| &own.by_time))
    }

    /// The index of the records that the queue's RETAIN is for, for changes; `None`
    /// unless it is one of ended messages.
    fn at_mut(&mut self, stored: StoredState) -> Option<&mut TimeIndex> {
        match stored {
            StoredState::Finished => Some(&mut self.finished),
            StoredState::Cancelled => Some(&mut self.cancelled),
            StoredState::Dead => Some(&mut self.dead),
            _ => None,
        }
    }

    /// The finished or cancelled message that ended first: its time and number.
    pub fn oldest_settled(&self) -> Option<(Millis, Seq)> {
        let own = self.own.as_deref();
        let own = own.and_then(|own| earliest(&own.finished.by_time, &own.cancelled.by_time));
        self.oldest_by_queue().into_iter().chain(own).min()
    }

    /// The finished or cancelled message that ended first of those that the queue's
    /// RETAIN applies to: its time and number.
    pub fn oldest_by_queue(&self) -> Option<(Millis, Seq)> {
        earliest(&self.finished, &self.cancelled)
    }

    /// The record whose own RETAIN ends first: when, and its number.
    pub fn next_own_end(&self) -> Option<(Millis, Seq)> {
        let own = self.own.as_ref()?;
        earliest(&own.finished.by_end, &own.cancelled.by_end)
    }

    /// The dead message that died first: its time and number.
    pub fn oldest_dead(&self) -> Option<(Millis, Seq)> {
        self.dead.first().map(|(key, ())| key)
    }

    /// Whether there are neither records nor remembered ids.
    pub fn is_empty(&self) -> bool {
        let main = [&self.finished, &self.cancelled, &self.dead];
        let has_any = main.iter().any(|index| !index.is_empty());
        !has_any && self.own.is_none() && self.dedup.oldest().is_none()
    }

    /// The indexes, for freeing.
    pub fn into_indexes(self) -> Vec<TimeIndex> {
        let own = self.own.map(|own| [own.finished, own.cancelled]);
        let own = own.into_iter().flatten();
        let own = own.flat_map(|own| [own.by_time, own.by_end]);
        let main = [self.finished, self.cancelled, self.dead];
        main.into_iter().chain(own).collect()
    }

    /// Bytes allocated. O(1).
    pub fn memory_bytes(&self) -> usize {
        let own = self.own.as_ref().map_or(0, |own| own.memory_bytes());
        own + self.finished.memory_bytes()
            + self.cancelled.memory_bytes()
            + self.dead.memory_bytes()
            + self.dedup.box_bytes()
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
    /// The ids of the table, roughly by the time at which their messages ended. An id
    /// that is forgotten late costs memory for a while, never a wrong answer. Each id is
    /// in the list once.
    by_end: LongList<(Millis, Arc<[u8]>)>,
    /// Bytes allocated for the ids.
    id_bytes: usize,
}

unused!(DedupMemory);

/// The bytes allocated for an id behind the two counts of its owners.
fn bytes_of(id: &[u8]) -> usize {
    allocated(2 * size_of::<usize>() + id.len())
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
            self.id_bytes += bytes_of(id);
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
            self.id_bytes -= bytes_of(&id);
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
        self.id_bytes = self.entries().map(|(id, _)| bytes_of(id)).sum();
    }

    /// The ids and when their messages ended, in the order in which they were
    /// remembered.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = (&[u8], Millis)> + '_ {
        self.by_end.iter().map(|(ended_at, id)| (&**id, *ended_at))
    }

    /// Bytes allocated. O(1).
    pub fn memory_bytes(&self) -> usize {
        self.by_id.allocation_size() + self.by_end.memory_bytes() + self.id_bytes
    }
}
