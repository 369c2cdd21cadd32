//! The pending messages of a group, by state.
//!
//! Due messages and later ones are kept separately, so that the number of each is known.

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

use crate::index::order_key::OrderKey;
use crate::message::state::StoredState;
use crate::Millis;

/// The pending messages of a group: a list as long as there are few and plain ones,
/// as in most groups, else ordered sets.
#[derive(Clone)]
pub enum Backlog {
    /// A few plain messages in the order of their due times.
    Few(List),
    /// Messages of any kind.
    Any(Box<Orders>),
}

/// The properties of a pending message that its group needs.
#[derive(Debug, Clone, Copy)]
pub struct Member {
    /// Its position in the order of the group.
    pub key: OrderKey,
    /// When it is due.
    pub due: Millis,
    /// Whether a delivery of it has failed.
    pub failed: bool,
}

impl Default for Backlog {
    fn default() -> Backlog {
        Backlog::Few(List::default())
    }
}

impl Backlog {
    /// Builds a backlog of these messages, given in any order. O(n log n).
    pub fn from_members(mut members: Vec<(StoredState, Member)>) -> Backlog {
        members.sort_unstable_by_key(|(_, member)| member.key);
        let mut backlog = Backlog::default();
        for (stored, member) in members {
            backlog.insert(stored, member);
        }
        backlog
    }

    /// Inserts a message. O(log n).
    ///
    /// Returns true if the message is due, another due message is before it, all
    /// messages of the group have one priority and none has failed. Returns false
    /// also if this is not known without a search.
    pub fn insert(&mut self, stored: StoredState, member: Member) -> bool {
        match self {
            Backlog::Few(list) => match list.insert(stored, member) {
                // In a list all due messages are before all others.
                Ok(before) => return before > 0 && stored == StoredState::Due,
                Err(Unfit) => self.change(|orders| orders.insert(stored, member)),
            },
            Backlog::Any(orders) => orders.insert(stored, member),
        }
        false
    }

    /// Prefetches the memory where the next message usually goes, so that the
    /// insertion need not wait for it. O(1). Changes nothing.
    #[inline]
    pub fn expect_one(&self) {
        if let Backlog::Few(list) = self {
            list.expect_one();
        }
    }

    /// Removes a message. O(log n).
    pub fn remove(&mut self, stored: StoredState, member: Member) {
        match self {
            Backlog::Few(list) => list.remove(member),
            Backlog::Any(orders) => {
                orders.remove(stored, member);
                self.tidy();
            }
        }
    }

    /// Marks a message in the state `from` as due. O(log n).
    pub fn promote(&mut self, from: StoredState, member: Member) {
        if let Backlog::Few(list) = self {
            if list.promote(member).is_ok() {
                return;
            }
        }
        self.change(|orders| {
            orders.remove(from, member);
            orders.insert(StoredState::Due, member);
        });
    }

    /// If one of the orders has more than `most` messages, drops about `most` of
    /// them from the first such order. Returns whether it did. For freeing in
    /// slices.
    pub fn drain_many(&mut self, most: usize) -> bool {
        match self {
            Backlog::Few(_) => false,
            Backlog::Any(orders) => orders.drain_many(most),
        }
    }

    /// All messages.
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

    /// Bytes allocated. O(1).
    #[inline]
    pub fn memory_bytes(&self) -> usize {
        match self {
            Backlog::Few(list) => list.memory_bytes(),
            Backlog::Any(orders) => orders.memory_bytes(),
        }
    }

    /// Applies a change to the ordered sets, converting a list to them first.
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
    /// Prints the contents, independent of the form.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Pending { fresh, failed } = self.all();
        let orders = [fresh.ahead, fresh.due, failed.ahead, failed.due];
        f.debug_tuple("Backlog")
            .field(&orders.map(|order| order.iter().collect::<Vec<_>>()))
            .finish()
    }
}
