//! What is kept of messages that have ended.

use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::HashMap;

use super::id::NameHasher;
use super::state::Place;
use super::{Millis, Seq, TimeIndex};

/// The ended messages that are kept, by the time they ended.
#[derive(Debug, Clone, Default)]
pub struct Records {
    /// Acked ones.
    pub finished: TimeIndex,
    /// Cancelled ones.
    pub cancelled: TimeIndex,
    /// Dead ones.
    pub dead: TimeIndex,
    /// Ids that stay taken though their records are gone.
    pub dedup: DedupMemory,
}

impl Records {
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

    /// How many finished and cancelled ones there are.
    pub fn settled(&self) -> u64 {
        (self.finished.len() + self.cancelled.len()) as u64
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
            + self.dedup.memory_bytes()
    }
}

/// Ids of messages that have ended and left no record.
#[derive(Debug, Clone, Default)]
pub struct DedupMemory {
    by_id: HashMap<Arc<[u8]>, Millis, NameHasher>,
    /// Roughly by the time they ended: what is forgotten late costs memory for
    /// a moment, never a wrong answer. Each id is in it once.
    by_end: VecDeque<(Millis, Arc<[u8]>)>,
}

impl DedupMemory {
    /// When the message that had this id ended, if it is remembered.
    pub fn ended_at(&self, id: &[u8]) -> Option<Millis> {
        self.by_id.get(id).copied()
    }

    /// Remembers an id.
    pub fn remember(&mut self, id: &[u8], ended_at: Millis) {
        let id: Arc<[u8]> = id.into();
        if self.by_id.insert(id.clone(), ended_at).is_some() {
            // It was free again but not forgotten yet, which is rare.
            self.by_end.retain(|(_, other)| *other != id);
        }
        self.by_end.push_back((ended_at, id));
    }

    /// When the message ended whose id is to be forgotten next.
    pub fn oldest(&self) -> Option<Millis> {
        self.by_end.front().map(|(ended_at, _)| *ended_at)
    }

    /// Forgets the id that is to be forgotten next.
    pub fn forget_oldest(&mut self) {
        if let Some((_, id)) = self.by_end.pop_front() {
            self.by_id.remove(&id);
        }
    }

    /// Forgets all ids that ended `window` ms before `now` or earlier. O(n).
    pub fn forget_all(&mut self, now: Millis, window: Millis) {
        let gone = |ended_at: Millis| ended_at.saturating_add(window) <= now;
        self.by_id.retain(|_, ended_at| !gone(*ended_at));
        self.by_end.retain(|(ended_at, _)| !gone(*ended_at));
    }

    /// What is remembered, in the order it was entered.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = (&[u8], Millis)> + '_ {
        self.by_end.iter().map(|(ended_at, id)| (&**id, *ended_at))
    }

    /// Bytes allocated, roughly.
    pub fn memory_bytes(&self) -> usize {
        self.by_id.allocation_size() + self.by_end.capacity() * 24 + self.by_end.len() * 56
    }
}
