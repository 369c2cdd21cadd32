//! What only some groups have.

use crate::holds::Holds;
use crate::line::LineKey;
use crate::ordered::OrderedSet;
use crate::rate::RateWindow;
use crate::records::GroupRecords;
use crate::settings::Rate;
use crate::{Millis, Receipt};

/// What GROUPSET said of a group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupSettings {
    /// Messages given in one turn; 0 for the default, 1.
    pub weight: u64,
    /// Batches leased at once; 0 for the queue's own number.
    pub concurrency: u64,
    /// Limit of its deliveries, if any.
    pub rate: Option<Rate>,
    /// What that limit has to count.
    pub window: RateWindow,
}

/// What only some groups have.
#[derive(Debug, Clone, Default)]
pub struct GroupExtension {
    /// Its records.
    pub records: GroupRecords,
    /// Dead messages that hold it, and maybe some that do no longer.
    pub(crate) holds: Holds,
    /// Until when it is paused; NEVER for without end.
    pub paused_until: Option<Millis>,
    /// What GROUPSET said.
    pub settings: Option<Box<GroupSettings>>,
    /// Messages given in the present turn.
    pub turn: u64,
    /// When to look at it again though nothing happens to it.
    pub wake: Option<Millis>,
    /// The places that time will give it after the one that the group itself knows
    /// of.
    pub(super) further: Vec<LineKey>,
    /// The first receipts of the batches that are leased beside the oldest, which
    /// the group itself knows.
    pub(super) batches: OrderedSet<Receipt>,
}

impl GroupExtension {
    pub(super) const fn new() -> GroupExtension {
        GroupExtension {
            records: GroupRecords::new(),
            holds: Holds::new(),
            paused_until: None,
            settings: None,
            turn: 0,
            wake: None,
            further: Vec::new(),
            batches: OrderedSet::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
            && self.holds.is_empty()
            && self.paused_until.is_none()
            && self.settings.is_none()
            && self.turn == 0
            && self.wake.is_none()
            && self.further.is_empty()
            && self.batches.is_empty()
    }
}
