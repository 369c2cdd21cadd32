//! The parts of a queue, from which it is written to a snapshot and rebuilt.
//!
//! The parts hold everything that can affect a later reply, in an order that
//! depends only on the operations that led to the queue. Therefore queues that were
//! given the same operations have equal parts, and queues with equal parts give
//! equal replies from then on. Every index and most counts follow from the parts,
//! so they are left out and recomputed by the [`Builder`].

mod again;
mod batch_members;
mod builder;
mod check;
mod group_part;
mod leases;
mod lists;
mod parts;
mod shift;
#[cfg(any(test, feature = "validate"))]
mod valid;

use std::collections::BTreeSet;

use super::Queue;
use crate::collections::rate_window::RateWindow;
use crate::groups::breaker::Circuit;
use crate::groups::group::Group;
use crate::index::ready_line::{Join, Position};
use crate::limits::Invalid;
use crate::message::body::Content;
use crate::message::id::Id;
use crate::message::Message;
use crate::settings::{Clock, Settings};
use crate::stats::{Lateness, Totals};
use crate::sums::Count;
use crate::{GroupIx, Millis, Receipt, Seq};

pub use batch_members::ReleasedPart;
pub use builder::{Builder, LimitPart};
pub use group_part::GroupPart;
pub use parts::Parts;

/// A position in the ready line. The command that joined it is stored as a rank,
/// because ticket numbers may differ between two equal queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SavedPosition {
    /// Priority of the message that would be delivered.
    pub priority: i8,
    /// When the entry joined the ready line, in Unix ms.
    pub time: Millis,
    /// 0 if it joined at a due time; otherwise the rank of the command among those in the
    /// line, from 1.
    pub rank: u64,
    /// Number of the message that would have been given at that moment.
    pub seq: Seq,
}

/// The part of a queue that exists once.
#[derive(Debug, Clone)]
pub struct Whole {
    /// Options of the queue.
    pub settings: Settings,
    /// Whether the queue follows the server's clock or a MANUAL one.
    pub clock: Clock,
    /// The latest time at which the queue has acted, in Unix ms.
    pub last: Millis,
    /// The number that the next message will get.
    pub next_seq: Seq,
    /// The last receipt given out.
    pub last_receipt: Receipt,
    /// Salt of the ids that are generated from now on.
    pub salt: u64,
    /// Totals since the queue was created.
    pub totals: Totals,
    /// Histogram of how late deliveries were.
    pub lateness: Lateness,
    /// The deliveries that RATE still counts.
    pub window: RateWindow,
    /// End of the pause in Unix ms; NEVER for a pause without end.
    pub paused_until: Option<Millis>,
    /// Position of the ungrouped messages in the ready line.
    pub plain_position: Option<SavedPosition>,
}

/// The record of a consumer: when it was last seen (Unix ms), and the numbers of its
/// deliveries, acks and nacks.
pub type Known = (Millis, [Count; 3]);

/// The lease of a running message, without its receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Term {
    /// First receipt of the batch in which it was delivered.
    pub batch: Receipt,
    /// When the lease ends, in Unix ms.
    pub until: Millis,
}

/// A message that is written to or read from a snapshot.
#[derive(Debug, Clone, Copy)]
pub struct Numbered<'a> {
    /// Number of the message.
    pub seq: Seq,
    /// The message.
    pub message: &'a Message,
    /// Its id (if given) and payload.
    pub content: Content<'a>,
    /// Its lease, if it is running.
    pub term: Option<Term>,
    /// When the first send was done (Unix ms) of the chain of sends that ends with this
    /// message, each of which replaced the one before.
    pub first_sent: Option<Millis>,
    /// The number of the batch that it is in, if it is in one.
    pub batch: Option<Seq>,
    /// The number of the set of siblings that it is in, if it is a child.
    pub siblings: Option<Seq>,
}

/// The group and consumer of a message, by their numbers within the snapshot.
#[derive(Debug, Clone, Copy, Default)]
pub struct Names {
    /// Group of the message.
    pub group: Option<u64>,
    /// Consumer that had its last delivery.
    pub consumer: Option<u64>,
    /// The batch that it is in.
    pub batch: Option<u64>,
    /// The set of siblings that it is in.
    pub siblings: Option<u64>,
}

/// A group that is written to a snapshot.
#[derive(Debug, Clone)]
pub struct GroupSeen<'a> {
    /// The group itself.
    pub group: &'a Group,
    /// Dead messages that hold the group: numbers, in order, and ids.
    pub held_by: Vec<(Seq, Id<'a>)>,
    /// Position of the group in the ready line, if it can give.
    pub line: Option<SavedPosition>,
    /// Messages given in the present turn.
    pub turn: u64,
    /// When the group must be checked again although nothing happens to it, in Unix
    /// ms.
    pub wake: Option<Millis>,
    /// Its breaker, unless that is closed and remembers no failure.
    pub breaker: Option<&'a Circuit>,
    /// The limit for which it waits, and the cost of its next message for the limit.
    pub home: Option<(&'a [u8], u64)>,
}

impl SavedPosition {
    fn key(self, group: GroupIx) -> Position {
        Position {
            priority: self.priority,
            join: Join {
                time: self.time,
                ticket: self.rank,
            },
            seq: self.seq,
            group,
        }
    }
}

type Checked = Result<(), Invalid>;

/// The queue with its clock set back by `by` ms, to `now` (Unix ms). The groups
/// `left_out` are not in the ready line yet. O(n log n).
///
/// Errors: the queue is damaged.
pub(super) fn set_back(
    queue: &Queue,
    by: Millis,
    now: Millis,
    left_out: &BTreeSet<GroupIx>,
) -> Result<Queue, Invalid> {
    again::rebuild(queue, Some(shift::Shift { by, now }), left_out)
}

/// Checks that the queue equals the queue that is rebuilt from its parts, in every
/// index and count. For tests; O(n log n).
///
/// Errors: names the first difference.
#[cfg(any(test, feature = "validate"))]
pub fn validate(queue: &Queue) -> Result<(), String> {
    let rebuilt = again::rebuild(queue, None, &BTreeSet::new())?;
    valid::compare(queue, &rebuilt)
}
