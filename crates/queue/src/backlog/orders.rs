//! The messages of a group that has many, or such as stand in no simple order.

use super::list::List;
use super::pending::Order;
use super::Member;
use crate::footprint::allocated;
use crate::order_key::OrderKey;
use crate::ordered::{MinTime, OrderedSet};
use crate::state::Place;

/// Messages in the order of their group, each with its due time.
pub type GroupOrder = OrderedSet<OrderKey, MinTime>;

/// Messages that have failed, or such that have not.
#[derive(Clone, Default)]
pub struct SideOrders {
    /// Not due yet, as far as time was worked off.
    pub ahead: GroupOrder,
    /// Due.
    pub due: GroupOrder,
}

/// Any pending messages of a group.
#[derive(Clone, Default)]
pub struct Orders {
    /// Those that have not failed.
    pub fresh: SideOrders,
    /// Those that have.
    pub failed: SideOrders,
    /// Payload bytes at each of the pending places.
    bytes: [u64; 3],
}

impl Orders {
    /// Enters a message.
    pub fn insert(&mut self, place: Place, member: Member) {
        self.order_mut(place, member.failed)
            .insert(member.key, MinTime(member.due));
        self.count(place, 0, member.size);
    }

    /// Takes a message out, if it is there.
    pub fn remove(&mut self, place: Place, member: Member) {
        let order = self.order_mut(place, member.failed);
        if order.remove(&member.key).is_some() {
            self.count(place, member.size, 0);
        }
    }

    /// Takes out all at this place: in their orders, and their payload bytes.
    pub fn take(&mut self, place: Place) -> ([GroupOrder; 2], u64) {
        let Orders { fresh, failed, .. } = self;
        let orders = match place {
            Place::Due => [&mut fresh.due, &mut failed.due].map(std::mem::take),
            Place::Delayed => [std::mem::take(&mut fresh.ahead), GroupOrder::new()],
            Place::Retry => [GroupOrder::new(), std::mem::take(&mut failed.ahead)],
            _ => Default::default(),
        };
        let bytes = self.bytes.get_mut(place as usize);
        (orders, bytes.map_or(0, std::mem::take))
    }

    /// Where more than `most` stand in any of them, drops about so many; whether
    /// they did.
    pub fn drain_many(&mut self, most: usize) -> bool {
        let sides = [&mut self.fresh, &mut self.failed];
        let mut sides = sides.into_iter();
        sides.any(|side| side.ahead.drain_many(most) || side.due.drain_many(most))
    }

    /// Payload bytes of those at this place.
    pub fn bytes_at(&self, place: Place) -> u64 {
        self.bytes.get(place as usize).copied().unwrap_or(0)
    }

    /// Counts the payload bytes at a place that were so many before and are so
    /// many after.
    pub fn count(&mut self, place: Place, before: u64, after: u64) {
        if let Some(bytes) = self.bytes.get_mut(place as usize) {
            *bytes = (*bytes + after).saturating_sub(before);
        }
    }

    /// Bytes allocated, its own included.
    pub fn memory_bytes(&self) -> usize {
        let orders = self.all().map(OrderedSet::memory_bytes);
        allocated(size_of::<Orders>()) + orders.into_iter().sum::<usize>()
    }

    fn all(&self) -> [&GroupOrder; 4] {
        let Orders { fresh, failed, .. } = self;
        [&fresh.ahead, &fresh.due, &failed.ahead, &failed.due]
    }

    fn order_mut(&mut self, place: Place, failed: bool) -> &mut GroupOrder {
        let side = match failed {
            true => &mut self.failed,
            false => &mut self.fresh,
        };
        match place {
            Place::Due => &mut side.due,
            _ => &mut side.ahead,
        }
    }
}

impl From<&List> for Orders {
    /// The same messages. O(n).
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
        for place in [Place::Delayed, Place::Due] {
            orders.count(place, 0, list.bytes_at(place));
        }
        orders
    }
}
