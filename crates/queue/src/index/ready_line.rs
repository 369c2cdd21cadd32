//! Positions in the ready line: the order in which groups, and the ungrouped
//! messages, deliver next.
//!
//! The ready line has those that can deliver now. When a message of a group will
//! fall due is known beforehand, and so are the positions that the group will then
//! have: they are kept as [`Expected`].

use smallvec::SmallVec;

use crate::collections::merge::merged;
use crate::collections::ordered::{Key, OrderedSet};
use crate::{GroupIx, Millis, Seq};

/// The time and the way in which an entry joined the ready line. An earlier millisecond
/// comes first. Within one millisecond, joins because a time had come are before those by
/// commands, and commands are in their order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Join {
    /// When it joined, in ms.
    pub time: Millis,
    /// 0 for a join at a due time, else the ticket of the command.
    pub ticket: u64,
}

impl Join {
    /// A join at this due time.
    pub fn by_time(time: Millis) -> Join {
        Join { time, ticket: 0 }
    }
}

/// A position in the ready line. Each priority has a line of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Priority of the message that would be delivered.
    pub priority: i8,
    /// When and how it joined.
    pub join: Join,
    /// The message that would have been delivered at that moment. Its number
    /// decides between those that joined together.
    pub seq: Seq,
    /// The group in this position; [`GroupIx::NONE`] for the ungrouped messages.
    pub group: GroupIx,
}

impl Key for Position {}

impl Key for (Millis, Seq, GroupIx) {}

impl Position {
    /// The position of the ungrouped messages, of which `head` (priority, due time,
    /// number) would be delivered first. They keep their present
    /// position if it has the same priority; else they join now.
    pub fn of_plain(head: (i8, Millis, Seq), before: Option<Position>, join: Join) -> Position {
        let (priority, _, seq) = head;
        let same = before.filter(|key| key.priority == priority);
        same.unwrap_or(Position {
            priority,
            join,
            seq,
            group: GroupIx::NONE,
        })
    }
}

/// The ready line: the positions of the groups that can give a message now, in the
/// order in which they will.
///
/// Groups whose breaker is half-open are kept separately, because a FETCH with NOACK
/// passes over all of them. So are the hidden groups, which are passed over when the
/// breaker of the ungrouped messages lets nothing out.
#[derive(Debug, Clone, Default)]
pub struct ReadyLine {
    steady: OrderedSet<Position>,
    half_open: OrderedSet<Position>,
    hidden: OrderedSet<Position>,
}

/// The group that stands at a position of the ready line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A group whose breaker is not half-open.
    Steady,
    /// A group whose breaker is half-open.
    HalfOpen,
    /// A hidden group: messages without a group.
    Hidden,
}

impl ReadyLine {
    /// A line without positions.
    pub const fn new() -> ReadyLine {
        ReadyLine {
            steady: OrderedSet::new(),
            half_open: OrderedSet::new(),
            hidden: OrderedSet::new(),
        }
    }

    /// Builds a line from positions in any order.
    pub fn from_positions(positions: Vec<(Position, Kind)>) -> ReadyLine {
        let of = |kind: Kind| {
            let keys = positions.iter().filter(|(_, of)| *of == kind);
            let mut keys: Vec<Position> = keys.map(|(key, _)| *key).collect();
            keys.sort_unstable();
            OrderedSet::from_sorted(keys.into_iter().map(|key| (key, ())))
        };
        ReadyLine {
            steady: of(Kind::Steady),
            half_open: of(Kind::HalfOpen),
            hidden: of(Kind::Hidden),
        }
    }

    /// The sets of positions, to be freed.
    pub fn into_sets(self) -> [OrderedSet<Position>; 3] {
        [self.steady, self.half_open, self.hidden]
    }

    /// The first position. With `no_ack`, groups with a half-open breaker do not count, and
    /// hidden groups count only if `hidden` returns true.
    #[inline]
    pub fn first(&self, no_ack: bool, hidden: impl FnOnce() -> bool) -> Option<Position> {
        let steady = self.steady.first().map(|(key, ())| key);
        if (self.half_open.is_empty() || no_ack) && self.hidden.is_empty() {
            return steady;
        }
        let half_open = self.half_open.first().filter(|_| !no_ack);
        let hidden = self.hidden.first().filter(|_| hidden());
        let others = half_open.into_iter().chain(hidden).map(|(key, ())| key);
        steady.into_iter().chain(others).min()
    }

    /// All positions in order.
    pub fn iter(&self) -> impl Iterator<Item = Position> + '_ {
        let steady = self.steady.iter().map(|(key, ())| key);
        let groups = merged(steady, self.half_open.iter().map(|(key, ())| key));
        merged(groups, self.hidden.iter().map(|(key, ())| key))
    }

    /// Adds a position. O(log n).
    pub fn insert(&mut self, key: Position, kind: Kind) {
        match kind {
            Kind::Steady => self.steady.insert(key, ()),
            Kind::HalfOpen => self.half_open.insert(key, ()),
            Kind::Hidden => self.hidden.insert(key, ()),
        };
    }

    /// Removes a position, which must be there. O(log n).
    pub fn remove(&mut self, key: &Position) {
        let known = self.steady.remove(key).is_some()
            || self.half_open.remove(key).is_some()
            || self.hidden.remove(key).is_some();
        debug_assert!(
            known,
            "the ready line does not have the position of a group"
        );
    }

    /// Notes that the breaker of the group with this position is closed now. O(log n).
    pub fn close_breaker(&mut self, key: Position) {
        if self.half_open.remove(&key).is_some() {
            self.steady.insert(key, ());
        }
    }

    /// Bytes allocated. O(1).
    pub fn memory_bytes(&self) -> usize {
        self.steady.memory_bytes() + self.half_open.memory_bytes() + self.hidden.memory_bytes()
    }
}

/// The only position that is stored for most groups: the one it has, or the first that is
/// expected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Spot {
    /// The group has no position.
    #[default]
    Nowhere,
    /// The group is in the ready line.
    Line {
        /// The priority, as in [`Position`].
        priority: i8,
        /// The time of joining, as in [`Position`].
        join: Join,
        /// The number of the message, as in [`Position`].
        seq: Seq,
    },
    /// The group will join the ready line.
    Expected {
        /// The priority, as in [`Position`].
        priority: i8,
        /// When it will join, in ms.
        time: Millis,
        /// The number of the message, as in [`Position`].
        seq: Seq,
    },
}

impl Spot {
    /// The position that a group has.
    pub fn in_line(key: Position) -> Spot {
        Spot::Line {
            priority: key.priority,
            join: key.join,
            seq: key.seq,
        }
    }

    /// The position that a group will have.
    pub fn expected(key: Position) -> Spot {
        Spot::Expected {
            priority: key.priority,
            time: key.join.time,
            seq: key.seq,
        }
    }

    /// The position as a key, for this `group`.
    pub fn key(self, group: GroupIx) -> Option<Position> {
        let (priority, join, seq) = match self {
            Spot::Nowhere => return None,
            Spot::Line {
                priority,
                join,
                seq,
            } => (priority, join, seq),
            Spot::Expected {
                priority,
                time,
                seq,
            } => (priority, Join::by_time(time), seq),
        };
        Some(Position {
            priority,
            join,
            seq,
            group,
        })
    }
}

/// The expected positions of a group in the order of their times. With the first it
/// joins the ready line, with each further one it moves to a line that goes before.
/// Nearly always there is at most one.
pub type Positions = SmallVec<[Position; 1]>;

/// The expected positions of all groups.
///
/// Each group has a few of them at most, however many messages it has. So the first
/// group in the ready line is known at once, even if very many messages fall due at
/// the same time.
#[derive(Debug, Clone, Default)]
pub struct Expected {
    /// By priority, lowest number first. No set is empty.
    lanes: Vec<(i8, Lane)>,
}

/// The expected positions of one priority, by time, number and group.
pub type Lane = OrderedSet<(Millis, Seq, GroupIx)>;

impl Expected {
    /// No positions.
    pub const fn new() -> Expected {
        Expected { lanes: Vec::new() }
    }

    /// All positions, one set for each priority, to be freed.
    pub fn into_lanes(self) -> impl Iterator<Item = Lane> {
        self.lanes.into_iter().map(|(_, lane)| lane)
    }

    /// Adds a position, which must have a join because of a time. O(log n).
    pub fn insert(&mut self, key: Position) {
        let entry = (key.join.time, key.seq, key.group);
        match self
            .lanes
            .binary_search_by_key(&key.priority, |lane| lane.0)
        {
            Ok(at) => {
                if let Some((_, lane)) = self.lanes.get_mut(at) {
                    lane.insert(entry, ());
                }
            }
            Err(at) => {
                let lane = Lane::from_sorted([(entry, ())]);
                self.lanes.insert(at, (key.priority, lane));
            }
        }
    }

    /// Removes a position, if the index has it. O(log n).
    pub fn remove(&mut self, key: &Position) {
        let found = self
            .lanes
            .binary_search_by_key(&key.priority, |lane| lane.0);
        let lane = found
            .ok()
            .and_then(|at| Some((at, &mut self.lanes.get_mut(at)?.1)));
        let Some((at, lane)) = lane else {
            debug_assert!(false, "no lane has the position of a group");
            return;
        };
        let known = lane.remove(&(key.join.time, key.seq, key.group));
        debug_assert!(
            known.is_some(),
            "a lane does not have the position of a group"
        );
        if lane.is_empty() {
            self.lanes.remove(at);
        }
    }

    /// The position with the earliest time. O(priorities).
    pub fn next(&self) -> Option<Position> {
        let lanes = self.lanes.iter();
        let firsts = lanes.filter_map(|(priority, lane)| Some(key(*priority, lane.first()?.0)));
        firsts.min_by_key(|key| (key.join, key.seq))
    }

    /// The first position in the order of the ready line whose time has come by
    /// `now`.
    pub fn first(&self, now: Millis) -> Option<Position> {
        self.by(now).next()
    }

    /// The positions whose time has come by `now`, in the order of the ready line.
    /// If a group has several, only the one with the latest time holds.
    pub fn by(&self, now: Millis) -> impl Iterator<Item = Position> + '_ {
        self.lanes.iter().flat_map(move |(priority, lane)| {
            let entries = lane.iter().map(|(entry, ())| entry);
            entries
                .take_while(move |(time, _, _)| *time <= now)
                .map(|entry| key(*priority, entry))
        })
    }

    /// Bytes allocated. O(priorities).
    pub fn memory_bytes(&self) -> usize {
        self.lanes.iter().map(|(_, lane)| lane.memory_bytes()).sum()
    }
}

fn key(priority: i8, (time, seq, group): (Millis, Seq, GroupIx)) -> Position {
    Position {
        priority,
        join: Join::by_time(time),
        seq,
        group,
    }
}
