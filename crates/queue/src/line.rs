//! The line in which those stand that can give, and who is expected in it.

use smallvec::SmallVec;

use super::group::GroupIx;
use super::ordered::{Key, OrderedSet};
use super::{Millis, Seq};

/// When and how something joined the line. Who joined in an earlier
/// millisecond stands before; within one, what time did stands before what
/// commands did, and what commands did in their order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Join {
    /// When.
    pub time: Millis,
    /// 0 where time did it, else the ticket of the command.
    pub ticket: u64,
}

impl Join {
    /// How time lets something join.
    pub fn by_time(time: Millis) -> Join {
        Join { time, ticket: 0 }
    }
}

/// A place in the line: one line per priority of what would be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LineKey {
    /// Priority of the message that would be given.
    pub priority: i8,
    /// When and how it joined.
    pub join: Join,
    /// The message it would have given then: those who joined together stand
    /// by the send order of their heads.
    pub seq: Seq,
    /// Who stands here; [`GroupIx::NONE`] for the ungrouped messages.
    pub group: GroupIx,
}

impl Key for LineKey {}

impl Key for (Millis, Seq, GroupIx) {}

impl LineKey {
    /// Where the ungrouped messages stand that give this `head` (priority, due
    /// time, number) first: where they `stood`, or, where that has another
    /// priority, as they join now.
    pub fn of_plain(head: (i8, Millis, Seq), stood: Option<LineKey>, join: Join) -> LineKey {
        let (priority, _, seq) = head;
        let stands = stood.filter(|key| key.priority == priority);
        stands.unwrap_or(LineKey {
            priority,
            join,
            seq,
            group: GroupIx::NONE,
        })
    }
}

/// The one place of a group that is usually all there is to tell: where it stands
/// in the line, or the first that time will give it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Spot {
    /// There is none.
    #[default]
    Nowhere,
    /// In the line.
    Line {
        /// As in [`LineKey`].
        priority: i8,
        /// As in [`LineKey`].
        join: Join,
        /// As in [`LineKey`].
        seq: Seq,
    },
    /// Expected in the line.
    Expected {
        /// As in [`LineKey`].
        priority: i8,
        /// When time lets it join.
        time: Millis,
        /// As in [`LineKey`].
        seq: Seq,
    },
}

impl Spot {
    /// Where a group stands.
    pub fn in_line(key: LineKey) -> Spot {
        Spot::Line {
            priority: key.priority,
            join: key.join,
            seq: key.seq,
        }
    }

    /// Where time will let it stand.
    pub fn expected(key: LineKey) -> Spot {
        Spot::Expected {
            priority: key.priority,
            time: key.join.time,
            seq: key.seq,
        }
    }

    /// The place that this `group` has or will have.
    pub fn key(self, group: GroupIx) -> Option<LineKey> {
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
        Some(LineKey {
            priority,
            join,
            seq,
            group,
        })
    }
}

/// The places in the line that time gives to a group one after the other: the
/// first is where it joins, each further one has a priority that goes before.
/// Nearly always there is one at most.
pub type Places = SmallVec<[LineKey; 1]>;

/// The places that time will give to groups.
///
/// They are some few a group, however many messages it has: so who is first
/// in line is known at once also when very many messages fall due in one
/// moment.
#[derive(Debug, Clone, Default)]
pub struct Expected {
    /// By priority, lowest number first; none is empty.
    lanes: Vec<(i8, Lane)>,
}

/// Those of one priority.
pub type Lane = OrderedSet<(Millis, Seq, GroupIx)>;

impl Expected {
    /// All of them, by priority: to free them.
    pub fn into_lanes(self) -> impl Iterator<Item = Lane> {
        self.lanes.into_iter().map(|(_, lane)| lane)
    }

    /// Enters a place, one that time gives.
    pub fn insert(&mut self, key: LineKey) {
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

    /// Takes a place out.
    pub fn remove(&mut self, key: &LineKey) {
        if let Ok(at) = self
            .lanes
            .binary_search_by_key(&key.priority, |lane| lane.0)
        {
            if let Some((_, lane)) = self.lanes.get_mut(at) {
                lane.remove(&(key.join.time, key.seq, key.group));
                if lane.is_empty() {
                    self.lanes.remove(at);
                }
            }
        }
    }

    /// The place that time gives next.
    pub fn next(&self) -> Option<LineKey> {
        let lanes = self.lanes.iter();
        let firsts = lanes.filter_map(|(priority, lane)| Some(key(*priority, lane.first()?.0)));
        firsts.min_by_key(|key| (key.join, key.seq))
    }

    /// The place that is first in line of those that time has given by `now`.
    pub fn first(&self, now: Millis) -> Option<LineKey> {
        self.by(now).next()
    }

    /// The places that time has given by `now`, in the order of the line. Of
    /// those of one group only the last given is where it stands.
    pub fn by(&self, now: Millis) -> impl Iterator<Item = LineKey> + '_ {
        self.lanes.iter().flat_map(move |(priority, lane)| {
            let entries = lane.iter().map(|(entry, ())| entry);
            entries
                .take_while(move |(time, _, _)| *time <= now)
                .map(|entry| key(*priority, entry))
        })
    }

    /// Bytes allocated.
    pub fn memory_bytes(&self) -> usize {
        self.lanes.iter().map(|(_, lane)| lane.memory_bytes()).sum()
    }
}

fn key(priority: i8, (time, seq, group): (Millis, Seq, GroupIx)) -> LineKey {
    LineKey {
        priority,
        join: Join::by_time(time),
        seq,
        group,
    }
}
