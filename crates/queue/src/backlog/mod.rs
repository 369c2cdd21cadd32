//! What a group has pending, by where it stands.
//!
//! What is due and what is not are apart, so that all that a group has in one
//! state can be taken out at once.

mod list;
mod orders;
mod pending;
#[cfg(test)]
mod tests;

use std::fmt;

use list::{List, Unfit};
pub use orders::GroupOrder;
use orders::Orders;
pub use pending::{Order, Pending, Side};

use super::order_key::OrderKey;
use super::purges::Lost;
use super::state::Place;
use super::Millis;

/// The pending messages of a group: in a list as long as they are few and plain,
/// which is what most groups have.
#[derive(Clone)]
pub enum Backlog {
    /// Few, in the order of their due times.
    Few(List),
    /// Any.
    Any(Box<Orders>),
}

/// A pending message as its group knows it.
#[derive(Debug, Clone, Copy)]
pub struct Member {
    /// Its place in the order.
    pub key: OrderKey,
    /// When it is due.
    pub due: Millis,
    /// Whether a delivery of it has failed.
    pub failed: bool,
    /// Bytes of its payload.
    pub size: u64,
}

impl Default for Backlog {
    fn default() -> Backlog {
        Backlog::Few(List::default())
    }
}

impl Backlog {
    /// A backlog of these messages, in any order.
    pub fn from_members(mut members: Vec<(Place, Member)>) -> Backlog {
        members.sort_unstable_by_key(|(_, member)| member.key);
        let mut backlog = Backlog::default();
        for (place, member) in members {
            backlog.insert(place, member);
        }
        backlog
    }

    /// Enters a message; whether it is known at once that it is due and that, of
    /// messages of one priority of which none has failed, one that is due stands
    /// before it. O(log n).
    pub fn insert(&mut self, place: Place, member: Member) -> bool {
        match self {
            Backlog::Few(list) => match list.insert(place, member) {
                // What is due in a list stands before what is not.
                Ok(before) => return before > 0 && place == Place::Due,
                Err(Unfit) => self.change(|orders| orders.insert(place, member)),
            },
            Backlog::Any(orders) => orders.insert(place, member),
        }
        false
    }

    /// Asks for the memory where the next message goes that comes behind all others:
    /// what happens until it is entered need not wait for it. O(1), and changes nothing.
    #[inline]
    pub fn expect_one(&self) {
        if let Backlog::Few(list) = self {
            list.expect_one();
        }
    }

    /// Takes a message out. O(log n).
    pub fn remove(&mut self, place: Place, member: Member) {
        match self {
            Backlog::Few(list) => list.remove(place, member),
            Backlog::Any(orders) => {
                orders.remove(place, member);
                self.tidy();
            }
        }
    }

    /// A message's time has come. O(log n).
    pub fn promote(&mut self, from: Place, member: Member) {
        if let Backlog::Few(list) = self {
            if list.promote(member).is_ok() {
                return;
            }
        }
        self.change(|orders| {
            orders.remove(from, member);
            orders.insert(Place::Due, member);
        });
    }

    /// The payload of a message here has another size from now on.
    pub fn resize(&mut self, place: Place, before: u64, after: u64) {
        if let Backlog::Few(list) = self {
            if list.count(place, before, after).is_ok() {
                return;
            }
        }
        self.change(|orders| orders.count(place, before, after));
    }

    /// Takes out all at this place: in their orders, and their payload bytes.
    pub fn take(&mut self, place: Place) -> ([GroupOrder; 2], u64) {
        match self {
            Backlog::Few(list) => list.take(place),
            Backlog::Any(orders) => {
                let taken = orders.take(place);
                self.tidy();
                taken
            }
        }
    }

    /// Where more than `most` stand in any of its orders, drops about so many;
    /// whether they did.
    pub fn drain_many(&mut self, most: usize) -> bool {
        match self {
            Backlog::Few(_) => false,
            Backlog::Any(orders) => orders.drain_many(most),
        }
    }

    /// Those that are left where some were `lost`.
    pub fn left(&self, lost: Lost) -> Pending<'_> {
        let mut pending = self.all();
        if lost.delayed {
            pending.fresh.ahead = Order::NONE;
        }
        if lost.due {
            (pending.fresh.due, pending.failed.due) = (Order::NONE, Order::NONE);
        }
        pending
    }

    /// All of them.
    pub fn all(&self) -> Pending<'_> {
        match self {
            Backlog::Few(list) => Pending {
                fresh: Side {
                    ahead: list.ahead(),
                    due: list.due_ones(),
                },
                failed: Side {
                    ahead: Order::NONE,
                    due: Order::NONE,
                },
            },
            Backlog::Any(orders) => {
                let [fresh, failed] = [&orders.fresh, &orders.failed].map(|side| Side {
                    ahead: Order::Many(&side.ahead),
                    due: Order::Many(&side.due),
                });
                Pending { fresh, failed }
            }
        }
    }

    /// Payload bytes of those at this place.
    pub fn bytes_at(&self, place: Place) -> u64 {
        match self {
            Backlog::Few(list) => list.bytes_at(place),
            Backlog::Any(orders) => orders.bytes_at(place),
        }
    }

    /// Bytes allocated. O(1).
    #[inline]
    pub fn memory_bytes(&self) -> usize {
        match self {
            Backlog::Few(list) => list.memory_bytes(),
            Backlog::Any(orders) => orders.memory_bytes(),
        }
    }

    /// Changes the orders, which are made of the list if it is one.
    fn change(&mut self, change: impl FnOnce(&mut Orders)) {
        match self {
            Backlog::Any(orders) => change(orders),
            Backlog::Few(list) => {
                let mut orders = Box::new(Orders::from(&*list));
                change(&mut orders);
                *self = Backlog::Any(orders);
            }
        }
    }

    fn tidy(&mut self) {
        if self.all().is_empty() {
            *self = Backlog::default();
        }
    }
}

impl fmt::Debug for Backlog {
    /// What it holds, whichever way.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Pending { fresh, failed } = self.all();
        let orders = [fresh.ahead, fresh.due, failed.ahead, failed.due];
        let bytes = [Place::Delayed, Place::Due, Place::Retry].map(|place| self.bytes_at(place));
        f.debug_tuple("Backlog")
            .field(&orders.map(|order| order.iter().collect::<Vec<_>>()))
            .field(&bytes)
            .finish()
    }
}
