//! The state is alike on every server that has the queue: it is replicated and saved.

use std::collections::BTreeMap;

use super::ends::Unsettled;
use crate::collections::rate_window::RateWindow;
use crate::consumer::Consumers;
use crate::dead_letters::DeadLetters;
use crate::detached::Detached;
use crate::groups::breaker::Circuit;
use crate::groups::Groups;
use crate::index::batches::Batches;
use crate::index::dedup_ids::DedupIds;
use crate::index::fair_line::FairLine;
use crate::index::leases::Leases;
use crate::index::ready_line::Position;
use crate::index::records::Records;
use crate::index::siblings::AllSiblings;
use crate::message::id::Ids;
use crate::message::store::Store;
use crate::named_limits::NamedLimits;
use crate::schedule::Schedules;
use crate::settings::{Clock, Settings};
use crate::stats::{Lateness, Totals};
use crate::{Millis, Receipt, Seq};

/// The state of a queue.
#[derive(Debug, Clone)]
pub(super) struct State {
    pub(super) settings: Settings,
    pub(super) clock: Clock,
    /// The latest time at which the queue has acted, in Unix ms. It never acts at
    /// an earlier one.
    pub(super) last: Millis,
    pub(super) next_seq: Seq,
    pub(super) last_receipt: Receipt,
    /// Counts the commands that may add an entry to the ready line. It orders entries
    /// that joined within the same millisecond.
    pub(super) ticket: u64,
    pub(super) ids: Ids,
    pub(super) store: Store,
    pub(super) leases: Leases,
    pub(super) records: Records,
    pub(super) consumers: Consumers,
    /// Ends that leases had before their connection closed and GRACE shortened them,
    /// by receipt. Some of the leases may have ended.
    pub(super) old_ends: BTreeMap<Receipt, Millis>,
    pub(super) schedules: Schedules,
    pub(super) totals: Totals,
    pub(super) lateness: Lateness,
    /// The deliveries that the RATE of the queue still counts.
    pub(super) window: RateWindow,
    pub(super) paused_until: Option<Millis>,
    pub(super) groups: Groups,
    /// The breaker of the ungrouped messages, unless it is closed and remembers no
    /// failure.
    pub(super) plain_breaker: Option<Box<Circuit>>,
    /// Position of the ungrouped messages in the ready line, if any of them is due.
    pub(super) plain_position: Option<Position>,
    /// Named batches, and the messages that they hold. `None` where there are none.
    pub(super) batches: Option<Box<Batches>>,
    /// The children of messages of this or another queue. `None` where there are none.
    pub(super) siblings: Option<Box<AllSiblings>>,
    /// The outcome of dead messages that were to go to another queue. `None` if there were
    /// none.
    pub(super) dead_letters: Option<Box<DeadLetters>>,
    /// The ties to other keys that the queue has lost on its way here. `None` if there are none.
    pub(super) detached: Option<Box<Detached>>,
    /// The consequences of ends of messages that are not settled yet. `None` where that is nothing,
    /// and so whenever a command has ended.
    pub(super) unsettled: Option<Box<Unsettled>>,
    /// Deduplication ids of messages that were sent. `None` where there are none.
    pub(super) dedup_ids: Option<Box<DedupIds>>,
    /// Limits with names. `None` if no message and no DQ.LIMIT has named one.
    pub(super) limits: Option<Box<NamedLimits>>,
    /// The usage of groups, and their order by that. `None` with FAIR COUNT.
    pub(super) fair: Option<Box<FairLine>>,
}
