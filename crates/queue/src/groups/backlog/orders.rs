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
}

impl Orders {
    /// Inserts a message. O(log n).
    pub fn insert(&mut self, stored: StoredState, member: Member) {
        self.order_mut(stored, member.failed)
            .insert(member.key, MinTime(member.due));
    }

    /// Removes a message.
    pub fn remove(&mut self, stored: StoredState, member: Member) {
        let known = self.order_mut(stored, member.failed).remove(&member.key);
        let seq = member.key.seq();
        debug_assert!(known.is_some(), "no order has the message {seq}");
    }

    /// If one of the sets has more than `most` messages, drops about `most` of them
    /// from the first such set. Returns whether it did.
    pub fn drain_many(&mut self, most: usize) -> bool {
        let sides = [&mut self.fresh, &mut self.failed];
        let mut sides = sides.into_iter();
        sides.any(|side| side.ahead.drain_many(most) || side.due.drain_many(most))
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
        Orders {
            fresh: SideOrders {
                ahead: of(list.ahead()),
                due: of(list.due_ones()),
            },
            failed: SideOrders::default(),
        }
    }
}
