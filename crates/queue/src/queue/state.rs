//! The state is alike on every server that has the queue: it is replicated and saved.

use std::sync::Arc;

use super::seldom::Seldom;
use crate::collections::rare::{unused, Rare};
use crate::consumer::Consumers;
use crate::groups::Groups;
use crate::index::leases::Leases;
use crate::index::ready_line::Position;
use crate::index::records::Records;
use crate::message::id::Ids;
use crate::message::store::Store;
use crate::settings::{Clock, Settings};
use crate::stats::{Lateness, Totals};
use crate::{Millis, Receipt, Seq};

/// The state of a queue.
#[derive(Debug, Clone)]
pub(super) struct State {
    /// Queues with the default settings share them.
    pub(super) settings: Arc<Settings>,
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
    pub(super) store: Rare<Store>,
    pub(super) leases: Rare<Leases>,
    pub(super) records: Rare<Records>,
    pub(super) consumers: Rare<Consumers>,
    pub(super) totals: Rare<Totals>,
    pub(super) lateness: Rare<Lateness>,
    pub(super) paused_until: Option<Millis>,
    pub(super) groups: Rare<Groups>,
    pub(super) seldom: Rare<Seldom>,
    /// Position of the ungrouped messages in the ready line, if any of them is due.
    pub(super) plain_position: Option<Position>,
}

unused!(Store, Leases, Consumers, Totals, Lateness, Groups);
unused!(Records = Records::new());
