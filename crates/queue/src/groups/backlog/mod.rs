//! The backlog of a group: its pending messages, by stored state.
//!
//! Due and not yet due messages are kept apart, so that all messages of a group in
//! one state can be removed at once. A small plain backlog is one list (`list.rs`),
//! any other one consists of four ordered sets (`orders.rs`). Readers see either
//! through `pending.rs`.

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
use crate::purges::Lost;
use crate::Millis;

/// The pending messages of a group: a list as long as there are few and plain ones,
/// as in most groups, else ordered sets.
#[derive(Clone)]
pub enum Backlog {
    /// A few messages in the order of their due times.
    Few(List),
    /// Any messages.
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
    /// Bytes of its payload.
    pub size: u64,
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
            Backlog::Few(list) => list.remove(stored, member),
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

    /// Records that the payload of a message in this state has changed its size
    /// from `before` to `after` bytes.
    pub fn resize(&mut self, stored: StoredState, before: u64, after: u64) {
        if let Backlog::Few(list) = self {
            if list.count(stored, before, after).is_ok() {
                return;
            }
        }
        self.change(|orders| orders.count(stored, before, after));
    }

    /// Removes all messages in this state. Returns those that have not failed,
    /// those that have, and the payload bytes of both.
    pub fn take(&mut self, stored: StoredState) -> ([GroupOrder; 2], u64) {
        match self {
            Backlog::Few(list) => list.take(stored),
            Backlog::Any(orders) => {
                let taken = orders.take(stored);
                self.tidy();
                taken
            }
        }
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

    /// The messages that remain after a purge took those in `lost`.
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

    /// Payload bytes of the messages in this state. O(1).
    pub fn bytes_at(&self, stored: StoredState) -> u64 {
        match self {
            Backlog::Few(list) => list.bytes_at(stored),
            Backlog::Any(orders) => orders.bytes_at(stored),
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
        let bytes = [StoredState::Delayed, StoredState::Due, StoredState::Retry]
            .map(|stored| self.bytes_at(stored));
        f.debug_tuple("Backlog")
            .field(&orders.map(|order| order.iter().collect::<Vec<_>>()))
            .field(&bytes)
            .finish()
    }
}
