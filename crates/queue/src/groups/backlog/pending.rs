//! A read-only view of a backlog that hides in which form it is stored.

use std::ops::Bound;

use super::list::Entry;
use super::orders::GroupOrder;
use crate::collections::merge::merged;
use crate::index::order_key::OrderKey;
use crate::message::state::StoredState;
use crate::Millis;

/// The messages of a group in one state, in the order of the group.
#[derive(Debug, Clone, Copy)]
pub enum Order<'a> {
    /// Part of a list: messages of one priority in the order of their due times.
    Few {
        /// Due times and numbers.
        entries: &'a [Entry],
        /// The priority of all the messages.
        priority: i8,
    },
    /// An ordered set.
    Many(&'a GroupOrder),
}

/// The pending messages of a group that have failed, or those that have not.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    /// Messages that are not due yet, as of the last processing of due events.
    pub ahead: Order<'a>,
    /// Messages that are due.
    pub due: Order<'a>,
}

/// The pending messages of a group.
#[derive(Debug, Clone, Copy)]
pub struct Pending<'a> {
    /// Messages that have not failed.
    pub fresh: Side<'a>,
    /// Messages that have failed.
    pub failed: Side<'a>,
}

impl<'a> Order<'a> {
    /// No messages.
    pub const NONE: Order<'static> = Order::Few {
        entries: &[],
        priority: 0,
    };

    /// The number of messages. O(1).
    pub fn len(self) -> usize {
        match self {
            Order::Few { entries, .. } => entries.len(),
            Order::Many(order) => order.len(),
        }
    }

    /// Whether there are no messages. O(1).
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The first message. O(1).
    pub fn first(self) -> Option<OrderKey> {
        match self {
            Order::Few { entries, priority } => Some(entries.first()?.key(priority)),
            Order::Many(order) => order.first().map(|(key, _)| key),
        }
    }

    /// The first message that is due at `now`. O(log n).
    pub fn first_due(self, now: Millis) -> Option<OrderKey> {
        match self {
            Order::Few { entries, priority } => {
                let first = entries.first().filter(|entry| entry.due() <= now)?;
                Some(first.key(priority))
            }
            Order::Many(order) => order.first_at_most(now).map(|(key, _)| key),
        }
    }

    /// The earliest due time. O(1).
    pub fn earliest(self) -> Option<Millis> {
        match self {
            Order::Few { entries, .. } => Some(entries.first()?.due()),
            Order::Many(order) => order.min_measure().map(|due| due.0),
        }
    }

    /// The earliest due time of the messages before `bound`. O(log n).
    pub fn earliest_before(self, bound: &OrderKey) -> Option<Millis> {
        match self {
            Order::Few { entries, priority } => {
                let first = entries.first()?;
                (first.key(priority) < *bound).then(|| first.due())
            }
            Order::Many(order) => order.least_before(bound).map(|due| due.0),
        }
    }

    /// The messages from a bound on. O(log n) to start, then O(1) each.
    pub fn keys(self, from: Bound<OrderKey>) -> impl Iterator<Item = OrderKey> + 'a {
        let (few, many) = match self {
            Order::Few { entries, priority } => (Some((entries, priority)), None),
            Order::Many(order) => (None, Some(order)),
        };
        let few = few.into_iter().flat_map(move |(entries, priority)| {
            let begin = entries.partition_point(|entry| match from {
                Bound::Included(bound) => entry.key(priority) < bound,
                Bound::Excluded(bound) => entry.key(priority) <= bound,
                Bound::Unbounded => false,
            });
            let entries = entries.get(begin..).unwrap_or_default().iter();
            entries.map(move |entry| entry.key(priority))
        });
        let many = many
            .into_iter()
            .flat_map(move |order| order.range_from(from));
        few.chain(many.map(|(key, _)| key))
    }

    /// All messages in order, each with its due time.
    pub fn iter(self) -> impl Iterator<Item = (OrderKey, Millis)> + 'a {
        let (few, many) = match self {
            Order::Few { entries, priority } => (Some((entries, priority)), None),
            Order::Many(order) => (None, Some(order)),
        };
        let few = few.into_iter().flat_map(|(entries, priority)| {
            let entries = entries.iter();
            entries.map(move |entry| (entry.key(priority), entry.due()))
        });
        let many = many.into_iter().flat_map(GroupOrder::iter);
        few.chain(many.map(|(key, due)| (key, due.0)))
    }
}

impl Pending<'_> {
    /// The number of messages in this state. O(1).
    pub fn count_at(self, stored: StoredState) -> u64 {
        let count = match stored {
            StoredState::Delayed => self.fresh.ahead.len(),
            StoredState::Retry => self.failed.ahead.len(),
            StoredState::Due => self.fresh.due.len() + self.failed.due.len(),
            _ => 0,
        };
        count as u64
    }

    /// The number of messages. O(1).
    pub fn len(self) -> u64 {
        (self.fresh.len() + self.failed.len()) as u64
    }

    /// Whether there are no messages. O(1).
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}

impl<'a> Side<'a> {
    /// The number of messages. O(1).
    pub fn len(self) -> usize {
        self.ahead.len() + self.due.len()
    }

    /// Whether there are no messages. O(1).
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The first message in order. O(1).
    pub fn first(self) -> Option<OrderKey> {
        self.min_of(Order::first)
    }

    /// The first message in order that is due at `now`. O(log n).
    pub fn first_due(self, now: Millis) -> Option<OrderKey> {
        self.min_of(|order| order.first_due(now))
    }

    /// The earliest due time. O(1).
    pub fn earliest(self) -> Option<Millis> {
        self.min_of(Order::earliest)
    }

    /// The earliest due time of the messages before `bound` in order. O(log n).
    pub fn earliest_before(self, bound: &OrderKey) -> Option<Millis> {
        self.min_of(|order| order.earliest_before(bound))
    }

    /// The due times, in no order.
    pub fn times(self) -> impl Iterator<Item = Millis> + 'a {
        let all = self.ahead.iter().chain(self.due.iter());
        all.map(|(_, due)| due)
    }

    /// The messages that are due at `now`, in order. O(n).
    pub fn all_due(self, now: Millis) -> impl Iterator<Item = OrderKey> + 'a {
        let of = |order: Order<'a>| {
            let due = order.iter().filter(move |(_, due)| *due <= now);
            due.map(|(key, _)| key)
        };
        merged(of(self.due), of(self.ahead))
    }

    fn min_of<T: Ord>(self, of: impl Fn(Order<'a>) -> Option<T>) -> Option<T> {
        match (of(self.due), of(self.ahead)) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
}
