//! The general form of a backlog: ordered sets for a group with many messages, or
//! with messages whose order is not that of their due times.

use super::list::List;
use super::pending::Order;
use super::Member;
use crate::collections::footprint::allocated;
use crate::collections::ordered::{MinTime, OrderedSet};
use crate::index::order_key::OrderKey;
use crate::message::state::StoredState;

/// Messages in the order of their group, each with its due time.
pub type GroupOrder = OrderedSet<OrderKey, MinTime>;

/// The messages of a group that have failed, or those that have not.
#[derive(Clone, Default)]
pub struct SideOrders {
    /// Messages that are not due yet, as of the last processing of due events.
    pub ahead: GroupOrder,
    /// Messages that are due.
    pub due: GroupOrder,
}

/// All pending messages of a group.
#[derive(Clone, Default)]
pub struct Orders {
    /// Messages that have not failed.
    pub fresh: SideOrders,
    /// Messages that have failed.
    pub failed: SideOrders,
    /// Payload bytes of each pending state, by the number of the state.
    bytes: [u64; 3],
}

impl Orders {
    /// Inserts a message. O(log n).
    pub fn insert(&mut self, stored: StoredState, member: Member) {
        self.order_mut(stored, member.failed)
            .insert(member.key, MinTime(member.due));
        self.count(stored, 0, member.size);
    }

    /// Removes a message, if it is there. O(log n).
    pub fn remove(&mut self, stored: StoredState, member: Member) {
        let order = self.order_mut(stored, member.failed);
        if order.remove(&member.key).is_some() {
            self.count(stored, member.size, 0);
        }
    }

    /// Removes all messages in this state. Returns those that have not failed,
    /// those that have, and the payload bytes of both. O(1).
    pub fn take(&mut self, stored: StoredState) -> ([GroupOrder; 2], u64) {
        let Orders { fresh, failed, .. } = self;
        let orders = match stored {
            StoredState::Due => [&mut fresh.due, &mut failed.due].map(std::mem::take),
            StoredState::Delayed => [std::mem::take(&mut fresh.ahead), GroupOrder::new()],
            StoredState::Retry => [GroupOrder::new(), std::mem::take(&mut failed.ahead)],
            _ => Default::default(),
        };
        let bytes = self.bytes.get_mut(stored as usize);
        (orders, bytes.map_or(0, std::mem::take))
    }

    /// If one of the sets has more than `most` messages, drops about `most` of them
    /// from the first such set. Returns whether it did.
    pub fn drain_many(&mut self, most: usize) -> bool {
        let sides = [&mut self.fresh, &mut self.failed];
        let mut sides = sides.into_iter();
        sides.any(|side| side.ahead.drain_many(most) || side.due.drain_many(most))
    }

    /// Payload bytes of the messages in this state. O(1).
    pub fn bytes_at(&self, stored: StoredState) -> u64 {
        self.bytes.get(stored as usize).copied().unwrap_or(0)
    }

    /// Updates the payload bytes of a state: `before` is subtracted, `after` is
    /// added.
    pub fn count(&mut self, stored: StoredState, before: u64, after: u64) {
        if let Some(bytes) = self.bytes.get_mut(stored as usize) {
            *bytes = (*bytes + after).saturating_sub(before);
        }
    }

    /// Bytes allocated, including this struct, which is boxed. O(1).
    pub fn memory_bytes(&self) -> usize {
        let orders = self.all().map(OrderedSet::memory_bytes);
        allocated(size_of::<Orders>()) + orders.into_iter().sum::<usize>()
    }

    fn all(&self) -> [&GroupOrder; 4] {
        let Orders { fresh, failed, .. } = self;
        [&fresh.ahead, &fresh.due, &failed.ahead, &failed.due]
    }

    fn order_mut(&mut self, stored: StoredState, failed: bool) -> &mut GroupOrder {
        let side = match failed {
            true => &mut self.failed,
            false => &mut self.fresh,
        };
        match stored {
            StoredState::Due => &mut side.due,
            _ => &mut side.ahead,
        }
    }
}

impl From<&List> for Orders {
    /// Builds the sets from a list. O(n).
    fn from(list: &List) -> Orders {
        let of = |order: Order<'_>| {
            GroupOrder::from_sorted(order.iter().map(|(key, due)| (key, MinTime(due))))
        };
        let mut orders = Orders {
            fresh: SideOrders {
                ahead: of(list.ahead()),
                due: of(list.due_ones()),
            },
            ..Orders::default()
        };
        for stored in [StoredState::Delayed, StoredState::Due] {
            orders.count(stored, 0, list.bytes_at(stored));
        }
        orders
    }
}
