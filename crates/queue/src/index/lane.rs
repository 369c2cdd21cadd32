//! Lanes: the pending messages of one priority by state and due time. Two sets of
//! lanes are the index of pending messages (`waiting.rs`).

use smallvec::SmallVec;

use super::pending_key::PendingKey;
use crate::message::state::StoredState;
use crate::{Millis, Seq, TimeIndex, IS_SMALL};

/// The pending messages of one priority, by due time.
#[derive(Debug, Clone, Default)]
pub struct Lane {
    /// Messages that are not due yet.
    pub delayed: TimeIndex,
    /// Messages that failed and whose backoff is not over.
    pub retry: TimeIndex,
    /// Messages that are due.
    pub due: TimeIndex,
}

impl Lane {
    /// The index for a state; `None` unless it is a pending one.
    pub fn at(&self, stored: StoredState) -> Option<&TimeIndex> {
        match stored {
            StoredState::Delayed => Some(&self.delayed),
            StoredState::Retry => Some(&self.retry),
            StoredState::Due => Some(&self.due),
            _ => None,
        }
    }

    fn at_mut(&mut self, stored: StoredState) -> Option<&mut TimeIndex> {
        match stored {
            StoredState::Delayed => Some(&mut self.delayed),
            StoredState::Retry => Some(&mut self.retry),
            StoredState::Due => Some(&mut self.due),
            _ => None,
        }
    }

    fn remove(&mut self, stored: StoredState, pending_key: &PendingKey) {
        let index = self.at_mut(stored);
        let known = index.and_then(|index| index.remove(&(pending_key.due, pending_key.seq)));
        debug_assert!(
            known.is_some(),
            "no lane has the message {}",
            pending_key.seq
        );
    }

    /// The message that is promoted next: its due time and number.
    pub fn next_promotion(&self) -> Option<(Millis, Seq)> {
        earlier(first(&self.delayed), first(&self.retry))
    }

    /// The first message that is due at `now`, whether it was promoted or not.
    #[inline]
    fn head(&self, now: Millis) -> Option<(Millis, Seq)> {
        earlier(first(&self.due), self.next_promotion()).filter(|(due, _)| *due <= now)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.delayed.is_empty() && self.retry.is_empty() && self.due.is_empty()
    }

    fn memory_bytes(&self) -> usize {
        self.delayed.memory_bytes() + self.retry.memory_bytes() + self.due.memory_bytes()
    }
}

#[inline]
fn first(index: &TimeIndex) -> Option<(Millis, Seq)> {
    index.first().map(|(key, ())| key)
}

#[inline]
fn earlier(a: Option<(Millis, Seq)>, b: Option<(Millis, Seq)>) -> Option<(Millis, Seq)> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// Consecutive messages of one index that can be promoted together.
#[derive(Debug)]
pub struct Run {
    /// The due times and numbers, in order; at least one.
    pub keys: SmallVec<[(Millis, Seq); Run::MOST]>,
    priority: i8,
    from: StoredState,
}

impl Run {
    /// Maximum length of a run, so that it needs no allocation.
    const MOST: usize = if IS_SMALL { 3 } else { 64 };
}

/// The lanes by priority, lowest number first. Only a last remaining lane may be
/// empty.
#[derive(Debug, Clone, Default)]
pub struct Lanes(Vec<(i8, Lane)>);

impl Lanes {
    /// No lanes.
    pub const fn new() -> Lanes {
        Lanes(Vec::new())
    }

    /// Builds the lanes of a snapshot from lanes sorted by priority, none of them
    /// empty.
    pub fn from_sorted(lanes: Vec<(i8, Lane)>) -> Lanes {
        Lanes(lanes)
    }

    /// Inserts a message. O(log n).
    pub fn insert(&mut self, stored: StoredState, pending_key: PendingKey) {
        let Some(lane) = self.lane_mut(pending_key.priority) else {
            return;
        };
        if let Some(index) = lane.at_mut(stored) {
            index.insert((pending_key.due, pending_key.seq), ());
        }
    }

    /// Removes a message.
    pub fn remove(&mut self, stored: StoredState, pending_key: PendingKey) {
        let Some(lane) = self.lane_mut(pending_key.priority) else {
            return;
        };
        lane.remove(stored, &pending_key);
        if lane.is_empty() && self.0.len() > 1 {
            self.0.retain(|(_, lane)| !lane.is_empty());
        }
    }

    /// Moves a message from the index of the state `from` to that of due messages.
    /// O(log n).
    pub fn promote(&mut self, from: StoredState, pending_key: PendingKey) {
        let Some(lane) = self.lane_mut(pending_key.priority) else {
            return;
        };
        lane.remove(from, &pending_key);
        lane.due.insert((pending_key.due, pending_key.seq), ());
    }

    /// The messages that are promoted next, at most `most`: as many as follow one
    /// another in one index, come before the heads of all other indexes and before
    /// `bound`.
    pub fn next_run(&self, mut bound: (Millis, Seq), most: usize) -> Option<Run> {
        let heads = self.iter().flat_map(|(priority, lane)| {
            let heads = [StoredState::Delayed, StoredState::Retry].into_iter();
            heads.filter_map(move |from| Some((first(lane.at(from)?)?, priority, from)))
        });
        let mut least: Option<((Millis, Seq), i8, StoredState)> = None;
        for head in heads {
            // The run ends at the lowest head of all other indexes.
            match least {
                Some(known) if known.0 < head.0 => bound = bound.min(head.0),
                _ => {
                    if let Some(later) = least.replace(head) {
                        bound = bound.min(later.0);
                    }
                }
            }
        }
        let (_, priority, from) = least.filter(|(head, ..)| *head < bound && most > 0)?;
        let index = self.lane(priority)?.at(from)?;
        let keys = index.iter().map(|(key, ())| key);
        let keys = keys.take_while(|key| *key < bound);
        Some(Run {
            keys: keys.take(most.min(Run::MOST)).collect(),
            priority,
            from,
        })
    }

    /// Promotes all messages of a run, which are due now.
    pub fn promote_run(&mut self, run: &Run) {
        let Some(lane) = self.lane_mut(run.priority) else {
            return;
        };
        if let Some(index) = lane.at_mut(run.from) {
            index.drain_some(run.keys.len());
        }
        for key in &run.keys {
            lane.due.insert(*key, ());
        }
    }

    fn lane(&self, priority: i8) -> Option<&Lane> {
        let found = self.0.binary_search_by_key(&priority, |(p, _)| *p);
        found.ok().and_then(|at| Some(&self.0.get(at)?.1))
    }

    /// Adds a lane. Nearly all queues have one, and a list doubles from four, so it grows by one.
    #[cold]
    #[inline(never)]
    fn add_lane(&mut self, at: usize, priority: i8) {
        self.0.reserve_exact(1);
        self.0.insert(at, (priority, Lane::default()));
    }

    #[inline]
    fn lane_mut(&mut self, priority: i8) -> Option<&mut Lane> {
        let at = match self.0.binary_search_by_key(&priority, |(p, _)| *p) {
            Ok(at) => at,
            Err(at) => {
                self.add_lane(at, priority);
                at
            }
        };
        self.0.get_mut(at).map(|(_, lane)| lane)
    }

    /// The lanes with their priorities, lowest number first.
    pub fn iter(&self) -> impl Iterator<Item = (i8, &Lane)> + '_ {
        self.0.iter().map(|(priority, lane)| (*priority, lane))
    }

    /// The message that is promoted next: its due time and number. O(lanes).
    pub fn next_promotion(&self) -> Option<(Millis, Seq)> {
        let lanes = self.0.iter();
        lanes.filter_map(|(_, lane)| lane.next_promotion()).min()
    }

    /// The message that is delivered first at `now`: priority, due time and number.
    /// Exact even while due messages are still being promoted. O(lanes).
    pub fn head(&self, now: Millis) -> Option<(i8, Millis, Seq)> {
        self.iter().find_map(|(priority, lane)| {
            let (due, seq) = lane.head(now)?;
            Some((priority, due, seq))
        })
    }

    /// The earliest due time of the messages that are due at `now`, promoted or not.
    /// O(lanes).
    pub fn earliest_due(&self, now: Millis) -> Option<Millis> {
        let heads = self.iter().filter_map(|(_, lane)| lane.head(now));
        heads.map(|(due, _)| due).min()
    }

    /// The number of messages in this state; 0 unless it is a pending one.
    /// O(lanes).
    pub fn count(&self, stored: StoredState) -> usize {
        self.indexes(stored).map(|index| index.len()).sum()
    }

    /// The indexes of the messages in this state, one for each lane.
    pub fn indexes(&self, stored: StoredState) -> impl Iterator<Item = &TimeIndex> + '_ {
        self.iter().filter_map(move |(_, lane)| lane.at(stored))
    }

    /// All indexes, to be freed.
    pub fn into_indexes(self) -> impl Iterator<Item = TimeIndex> {
        let lanes = self.0.into_iter();
        lanes.flat_map(|(_, lane)| [lane.delayed, lane.retry, lane.due])
    }

    /// Bytes allocated. O(lanes).
    pub fn memory_bytes(&self) -> usize {
        let lanes = self.iter();
        lanes
            .map(|(_, lane)| lane.memory_bytes() + size_of::<(i8, Lane)>())
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enter(lanes: &mut Lanes, stored: StoredState, priority: i8, due: Millis, seq: Seq) {
        let pending_key = PendingKey {
            seq,
            due,
            priority,
            grouped: false,
        };
        lanes.insert(stored, pending_key);
    }

    #[test]
    fn a_run_ends_where_another_index_or_the_bound_comes_first() {
        let mut lanes = Lanes::default();
        for (stored, priority, due, seq) in [
            (StoredState::Delayed, 0, 5, 1),
            (StoredState::Delayed, 0, 5, 2),
            (StoredState::Retry, 0, 5, 3),
            (StoredState::Delayed, 0, 5, 4),
            (StoredState::Delayed, -1, 6, 5),
            (StoredState::Delayed, -1, 6, 6),
            (StoredState::Delayed, -1, 6, 7),
            (StoredState::Delayed, -1, 6, 8),
            (StoredState::Delayed, -1, 9, 9),
        ] {
            enter(&mut lanes, stored, priority, due, seq);
        }
        let mut runs = Vec::new();
        while let Some(run) = lanes.next_run((9, 0), 10) {
            lanes.promote_run(&run);
            runs.push(run.keys.iter().map(|(_, seq)| *seq).collect::<Vec<_>>());
        }
        let expected: [&[Seq]; 5] = [&[1, 2], &[3], &[4], &[5, 6, 7], &[8]];
        assert_eq!(runs, expected);
        let counts = [StoredState::Due, StoredState::Delayed].map(|stored| lanes.count(stored));
        assert_eq!(counts, [8, 1]);
        assert!(lanes.next_run((10, 0), 0).is_none());
    }
}
