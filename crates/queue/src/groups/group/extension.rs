//! The part of a group that only some groups have: records, holds, settings, a
//! pause, a breaker.

use crate::collections::ordered::OrderedSet;
use crate::collections::rate_window::RateWindow;
use crate::groups::breaker::Circuit;
use crate::groups::holds::Holds;
use crate::index::fair_line::Usage;
use crate::index::ready_line::Position;
use crate::index::records::GroupRecords;
use crate::settings::Rate;
use crate::{LimitIx, Millis, Receipt};

/// The settings that GROUPSET gave a group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupSettings {
    /// Messages delivered in one turn; 0 for the default, which is 1.
    pub weight: u64,
    /// Batches leased at once; 0 for the setting of the queue.
    pub concurrency: u64,
    /// Limit of its deliveries, if any.
    pub rate: Option<Rate>,
    /// The deliveries counted for that limit.
    pub window: RateWindow,
}

/// The state that a group has because of limits with names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LimitedGroup {
    /// Whether it is hidden: the messages without a group that name the same limits.
    pub is_hidden: bool,
    /// The limit for which it waits.
    pub home: Option<Home>,
}

/// The limit for which a group in the ready line waits, and the cost of its next message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Home {
    /// The limit.
    pub limit: LimitIx,
    /// The cost of the next message of the group for the limit.
    pub cost: u64,
}

/// State that only some groups have. Allocated for a group once it has any of it.
#[derive(Debug, Clone, Default)]
pub struct GroupExtension {
    /// Its records.
    pub records: GroupRecords,
    /// Dead messages that hold it.
    pub(crate) holds: Holds,
    /// The end of its pause, NEVER for a pause without end. `None` if it is not
    /// paused.
    pub paused_until: Option<Millis>,
    /// The settings that GROUPSET gave.
    pub settings: Option<Box<GroupSettings>>,
    /// Its breaker, unless that is closed and remembers no failure.
    pub breaker: Option<Box<Circuit>>,
    /// The state that the group has because of limits with names: whether it is the hidden
    /// group of messages with the same limits, and where it waits.
    pub limited: Option<Box<LimitedGroup>>,
    /// The usage of the group, where groups take turns by usage.
    pub usage: Option<Box<Usage>>,
    /// Messages delivered in the current turn.
    pub turn: u64,
    /// Messages of the group that are held, because they wait for a batch.
    pub held: u64,
    /// When the group is to be checked again even if no command touches it.
    pub wake: Option<Millis>,
    /// Expected positions in the ready line behind the first one, which is in the
    /// group itself.
    pub(super) further: Vec<Position>,
    /// The first receipts of its leased batches but the oldest, which is in the
    /// group itself.
    pub(super) batches: OrderedSet<Receipt>,
}

impl GroupExtension {
    pub(super) const fn new() -> GroupExtension {
        GroupExtension {
            records: GroupRecords::new(),
            holds: Holds::new(),
            paused_until: None,
            settings: None,
            breaker: None,
            limited: None,
            usage: None,
            turn: 0,
            held: 0,
            wake: None,
            further: Vec::new(),
            batches: OrderedSet::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        // The field that most extensions are made for comes first.
        self.batches.is_empty()
            && self.records.is_empty()
            && self.holds.is_empty()
            && self.paused_until.is_none()
            && self.settings.is_none()
            && self.breaker.is_none()
            && self.limited.is_none()
            && self.usage.is_none()
            && self.turn == 0
            && self.held == 0
            && self.wake.is_none()
            && self.further.is_empty()
    }
}
