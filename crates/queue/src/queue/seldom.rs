//! The parts of the state that few queues have. They share one pointer of the queue, so that a
//! queue without any takes no memory for them.

use std::collections::BTreeMap;

use super::ends::Unsettled;
use crate::collections::rare::{unused, Rare, Unused};
use crate::collections::rate_window::RateWindow;
use crate::dead_letters::DeadLetters;
use crate::detached::Detached;
use crate::groups::breaker::Circuit;
use crate::index::batches::Batches;
use crate::index::dedup_ids::DedupIds;
use crate::index::fair_line::FairLine;
use crate::index::siblings::AllSiblings;
use crate::named_limits::NamedLimits;
use crate::schedule::Schedules;
use crate::{Millis, Receipt};

/// The parts that few queues have.
#[derive(Debug, Clone, Default)]
pub(super) struct Seldom {
    /// Ends that leases had before their connection closed and GRACE shortened them,
    /// by receipt. Some of the leases may have ended.
    pub(super) old_ends: Rare<BTreeMap<Receipt, Millis>>,
    pub(super) schedules: Rare<Schedules>,
    /// The deliveries that the RATE of the queue still counts.
    pub(super) window: Rare<RateWindow>,
    /// The breaker of the ungrouped messages, unless it is closed and remembers no
    /// failure.
    pub(super) plain_breaker: Option<Box<Circuit>>,
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

unused!(RateWindow);
unused!(BTreeMap<Receipt, Millis> = BTreeMap::new(), Schedules = Schedules::new());

impl Unused for Seldom {
    #[inline]
    fn unused() -> &'static Seldom {
        // Not a static: what is in the boxes cannot be shared between threads.
        const UNUSED: &Seldom = &Seldom {
            old_ends: Rare::UNUSED,
            schedules: Rare::UNUSED,
            window: Rare::UNUSED,
            plain_breaker: None,
            batches: None,
            siblings: None,
            dead_letters: None,
            detached: None,
            unsettled: None,
            dedup_ids: None,
            limits: None,
            fair: None,
        };
        UNUSED
    }
}

/// Whether the queue has a part, and access to it for changes, which makes nothing where there is
/// none. Both cost one comparison where the queue has nothing seldom.
macro_rules! part {
    ($($part:ident, $has:ident, $change:ident: $of:ty;)+) => {
        impl Rare<Seldom> {
            $(
                #[inline]
                pub(super) fn $has(&self) -> bool {
                    self.used().is_some_and(|seldom| seldom.$part.is_some())
                }

                #[inline]
                pub(super) fn $change(&mut self) -> Option<&mut $of> {
                    self.used_mut()?.$part.as_deref_mut()
                }
            )+
        }
    };
}

part! {
    batches, has_batches, batches_mut: Batches;
    siblings, has_siblings, siblings_mut: AllSiblings;
    detached, has_detached, detached_mut: Detached;
    unsettled, has_unsettled, unsettled_mut: Unsettled;
    dedup_ids, has_dedup_ids, dedup_ids_mut: DedupIds;
    limits, has_limits, limits_mut: NamedLimits;
    fair, has_fair, fair_mut: FairLine;
}
