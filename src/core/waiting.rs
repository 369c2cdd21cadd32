//! What waits for its time or for a consumer.
//!
//! Ungrouped messages stand in one lane per priority; a lane's due messages
//! are in the order in which they are given. Grouped ones stand in a lane of
//! their own, by time, and in the order of their group (`group.rs`).

use std::ops::Bound;

use super::state::Place;
use super::{Millis, Seq, TimeIndex};

/// Messages that wait, by due time.
#[derive(Debug, Clone, Default)]
pub struct Lane {
    /// Not due yet.
    pub delayed: TimeIndex,
    /// Failed, and not due again yet.
    pub retry: TimeIndex,
    /// Due.
    pub due: TimeIndex,
    /// Payload bytes of the messages at each of these places.
    bytes: [u64; 3],
}

/// A message as what waits knows it.
#[derive(Debug, Clone, Copy)]
pub struct Waiter {
    /// Its number.
    pub seq: Seq,
    /// When it is due.
    pub due: Millis,
    /// Lower goes first.
    pub priority: i8,
    /// Whether it has a group.
    pub grouped: bool,
    /// Bytes of its payload.
    pub size: u64,
}

impl Lane {
    /// A lane of a snapshot, with the payload bytes at each place.
    pub fn from_indexes(
        delayed: TimeIndex,
        due: TimeIndex,
        retry: TimeIndex,
        bytes: [u64; 3],
    ) -> Lane {
        Lane {
            delayed,
            retry,
            due,
            bytes,
        }
    }

    /// The index for this place, which must be a pending one.
    pub fn at(&self, place: Place) -> Option<&TimeIndex> {
        match place {
            Place::Delayed => Some(&self.delayed),
            Place::Retry => Some(&self.retry),
            Place::Due => Some(&self.due),
            _ => None,
        }
    }

    fn at_mut(&mut self, place: Place) -> Option<&mut TimeIndex> {
        match place {
            Place::Delayed => Some(&mut self.delayed),
            Place::Retry => Some(&mut self.retry),
            Place::Due => Some(&mut self.due),
            _ => None,
        }
    }

    fn count(&mut self, place: Place, size: u64, comes: bool) {
        // The three pending places have the numbers 0 to 2.
        if let Some(bytes) = self.bytes.get_mut(place as usize) {
            *bytes = match comes {
                true => *bytes + size,
                false => bytes.saturating_sub(size),
            };
        }
    }

    /// What is to be promoted next: its due time and message.
    pub fn next_promotion(&self) -> Option<(Millis, Seq)> {
        earlier(first(&self.delayed), first(&self.retry))
    }

    /// The first message that is due at `now`, promoted or not.
    fn head(&self, now: Millis) -> Option<(Millis, Seq)> {
        let unpromoted = self.next_promotion().filter(|(due, _)| *due <= now);
        earlier(first(&self.due), unpromoted)
    }

    fn is_empty(&self) -> bool {
        self.delayed.is_empty() && self.retry.is_empty() && self.due.is_empty()
    }

    fn memory_bytes(&self) -> usize {
        self.delayed.memory_bytes() + self.retry.memory_bytes() + self.due.memory_bytes()
    }
}

fn first(index: &TimeIndex) -> Option<(Millis, Seq)> {
    index.first().map(|(key, ())| key)
}

fn earlier(a: Option<(Millis, Seq)>, b: Option<(Millis, Seq)>) -> Option<(Millis, Seq)> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// All that waits in a queue.
#[derive(Debug, Clone, Default)]
pub struct Waiting {
    /// The ungrouped ones, by priority; no lane is empty.
    lanes: Vec<(i8, Lane)>,
    /// The grouped ones.
    pub grouped: Lane,
}

impl Waiting {
    /// What waits in a queue of a snapshot: lanes by priority, none empty, and
    /// the grouped messages.
    pub fn from_lanes(lanes: Vec<(i8, Lane)>, grouped: Lane) -> Waiting {
        Waiting { lanes, grouped }
    }

    /// Enters a message.
    pub fn insert(&mut self, place: Place, waiter: Waiter) {
        let Some(lane) = self.lane_mut(&waiter) else {
            return;
        };
        if let Some(index) = lane.at_mut(place) {
            index.insert((waiter.due, waiter.seq), ());
            lane.count(place, waiter.size, true);
        }
    }

    /// Takes a message out.
    pub fn remove(&mut self, place: Place, waiter: Waiter) {
        let Some(lane) = self.lane_mut(&waiter) else {
            return;
        };
        if let Some(index) = lane.at_mut(place) {
            index.remove(&(waiter.due, waiter.seq));
            lane.count(place, waiter.size, false);
        }
        if lane.is_empty() && !waiter.grouped && self.lanes.len() > 1 {
            self.lanes.retain(|(_, lane)| !lane.is_empty());
        }
    }

    /// The payload of a message here has another size from now on.
    pub fn resize(&mut self, place: Place, waiter: Waiter, size: u64) {
        if let Some(lane) = self.lane_mut(&waiter) {
            lane.count(place, waiter.size, false);
            lane.count(place, size, true);
        }
    }

    /// Whether a message stands here.
    pub fn contains(&self, place: Place, waiter: &Waiter) -> bool {
        let lane = if waiter.grouped {
            Some(&self.grouped)
        } else {
            let found = self
                .lanes
                .binary_search_by_key(&waiter.priority, |(p, _)| *p);
            found.ok().and_then(|at| Some(&self.lanes.get(at)?.1))
        };
        lane.and_then(|lane| lane.at(place))
            .is_some_and(|index| index.contains(&(waiter.due, waiter.seq)))
    }

    /// Takes all ungrouped messages at this place out at once: their indexes,
    /// and how many payload bytes they have. O(lanes).
    pub fn detach_plain(&mut self, place: Place) -> (Vec<TimeIndex>, u64) {
        let mut indexes = Vec::new();
        let mut bytes = 0;
        for (_, lane) in &mut self.lanes {
            if let Some(index) = lane.at_mut(place) {
                indexes.push(std::mem::take(index));
            }
            if let Some(count) = lane.bytes.get_mut(place as usize) {
                bytes += std::mem::take(count);
            }
        }
        (indexes, bytes)
    }

    fn lane_mut(&mut self, waiter: &Waiter) -> Option<&mut Lane> {
        if waiter.grouped {
            return Some(&mut self.grouped);
        }
        let found = self
            .lanes
            .binary_search_by_key(&waiter.priority, |(p, _)| *p);
        let at = match found {
            Ok(at) => at,
            Err(at) => {
                self.lanes.insert(at, (waiter.priority, Lane::default()));
                at
            }
        };
        self.lanes.get_mut(at).map(|(_, lane)| lane)
    }

    /// The next message to be promoted: when, and which.
    pub fn next_promotion(&self) -> Option<(Millis, Seq)> {
        self.lanes
            .iter()
            .map(|(_, lane)| lane)
            .chain([&self.grouped])
            .filter_map(Lane::next_promotion)
            .min()
    }

    /// The ungrouped message that goes out next at `now`: priority, due time
    /// and number. Exact also while a burst is still being promoted.
    pub fn plain_head(&self, now: Millis) -> Option<(i8, Millis, Seq)> {
        self.lanes.iter().find_map(|(priority, lane)| {
            let (due, seq) = lane.head(now)?;
            Some((*priority, due, seq))
        })
    }

    /// Messages at this place, which must be a pending one.
    pub fn count(&self, place: Place) -> usize {
        let grouped = self.grouped.at(place).map_or(0, |index| index.len());
        grouped + self.plain_count(place)
    }

    /// Ungrouped messages at this place.
    pub fn plain_count(&self, place: Place) -> usize {
        self.indexes(place).map(|index| index.len()).sum()
    }

    /// The indexes of the ungrouped messages at this place, one a lane.
    pub fn indexes(&self, place: Place) -> impl Iterator<Item = &TimeIndex> + '_ {
        self.lanes
            .iter()
            .filter_map(move |(_, lane)| lane.at(place))
    }

    /// The lanes of the ungrouped messages, by priority.
    pub fn lanes(&self) -> impl Iterator<Item = (i8, &Lane)> + '_ {
        self.lanes.iter().map(|(priority, lane)| (*priority, lane))
    }

    /// The earliest due time of all that is not due yet at `now` and that
    /// `counts` lets pass.
    pub fn next_due(&self, now: Millis, counts: impl Fn(Seq) -> bool) -> Option<Millis> {
        let after = |index: &TimeIndex| {
            let later = index.range_from(Bound::Excluded((now, Seq::MAX)));
            let mut later = later.map(|(key, ())| key);
            later.find(|(_, seq)| counts(*seq)).map(|(due, _)| due)
        };
        self.lanes
            .iter()
            .map(|(_, lane)| lane)
            .chain([&self.grouped])
            .flat_map(|lane| [after(&lane.delayed), after(&lane.retry)])
            .flatten()
            .min()
    }

    /// All indexes, for freeing.
    pub fn into_indexes(self) -> Vec<TimeIndex> {
        self.lanes
            .into_iter()
            .map(|(_, lane)| lane)
            .chain([self.grouped])
            .flat_map(|lane| [lane.delayed, lane.retry, lane.due])
            .collect()
    }

    /// Bytes allocated.
    pub fn memory_bytes(&self) -> usize {
        self.grouped.memory_bytes()
            + self
                .lanes
                .iter()
                .map(|(_, lane)| lane.memory_bytes() + size_of::<(i8, Lane)>())
                .sum::<usize>()
    }
}
