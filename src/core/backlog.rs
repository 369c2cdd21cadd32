//! What a group has pending, by where it stands.
//!
//! What is due and what is not are apart, so that all that a group has in one
//! state can be taken out at once.

use super::merge::merged;
use super::order_key::OrderKey;
use super::ordered::{MinTime, OrderedSet};
use super::purges::Lost;
use super::state::Place;
use super::Millis;

/// Messages in the order of their group, each with its due time.
pub type GroupOrder = OrderedSet<OrderKey, MinTime>;

/// No messages.
static NONE: GroupOrder = GroupOrder::new();

/// Messages that have failed, or such that have not.
#[derive(Debug, Clone, Default)]
struct Orders {
    /// Not due yet, as far as time was worked off.
    ahead: GroupOrder,
    /// Payload bytes of those.
    ahead_bytes: u64,
    due: GroupOrder,
}

/// The pending messages of a group.
#[derive(Debug, Clone, Default)]
pub struct Backlog {
    fresh: Orders,
    /// Those that have failed, if there are any: most groups have none.
    failed: Option<Box<Orders>>,
    /// Payload bytes of all that are due.
    due_bytes: u64,
}

/// The pending messages of a group that have failed, or those that have not.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    /// Not due yet, as far as time was worked off.
    pub ahead: &'a GroupOrder,
    /// Due.
    pub due: &'a GroupOrder,
}

/// The pending messages of a group, to look at.
#[derive(Debug, Clone, Copy)]
pub struct Pending<'a> {
    /// Those that have not failed.
    pub fresh: Side<'a>,
    /// Those that have.
    pub failed: Side<'a>,
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

impl Backlog {
    /// A backlog of these messages, in any order.
    pub fn from_members(mut members: Vec<(Place, Member)>) -> Backlog {
        members.sort_unstable_by_key(|(_, member)| member.key);
        let mut backlog = Backlog::default();
        let of = |due: bool, failed: bool| {
            let wanted = members.iter().filter(move |(place, member)| {
                (*place == Place::Due) == due && member.failed == failed
            });
            GroupOrder::from_sorted(wanted.map(|(_, m)| (m.key, MinTime(m.due))))
        };
        backlog.fresh = Orders {
            ahead: of(false, false),
            ahead_bytes: 0,
            due: of(true, false),
        };
        if members.iter().any(|(_, member)| member.failed) {
            backlog.failed = Some(Box::new(Orders {
                ahead: of(false, true),
                ahead_bytes: 0,
                due: of(true, true),
            }));
        }
        for (place, member) in &members {
            backlog.count(*place, member.size, true);
        }
        backlog
    }

    /// Enters a message.
    pub fn insert(&mut self, place: Place, member: Member) {
        self.order_mut(place, member.failed)
            .insert(member.key, MinTime(member.due));
        self.count(place, member.size, true);
    }

    /// Takes a message out.
    pub fn remove(&mut self, place: Place, member: Member) {
        self.order_mut(place, member.failed).remove(&member.key);
        self.count(place, member.size, false);
        self.tidy();
    }

    /// A message's time has come.
    pub fn promote(&mut self, from: Place, member: Member) {
        self.remove(from, member);
        self.insert(Place::Due, member);
    }

    /// The payload of a message here has another size from now on.
    pub fn resize(&mut self, place: Place, before: u64, after: u64) {
        self.count(place, before, false);
        self.count(place, after, true);
    }

    /// Takes out all at this place: in their orders, and their payload bytes.
    pub fn take(&mut self, place: Place) -> ([GroupOrder; 2], u64) {
        let due = place == Place::Due;
        let fresh = match place {
            Place::Due => std::mem::take(&mut self.fresh.due),
            Place::Delayed => std::mem::take(&mut self.fresh.ahead),
            _ => GroupOrder::new(),
        };
        let failed = match &mut self.failed {
            Some(failed) if due => std::mem::take(&mut failed.due),
            Some(failed) if place == Place::Retry => std::mem::take(&mut failed.ahead),
            _ => GroupOrder::new(),
        };
        let bytes = self.bytes_mut(place).map_or(0, std::mem::take);
        self.tidy();
        ([fresh, failed], bytes)
    }

    /// Where more than `most` stand in any of its orders, drops about so many;
    /// whether they did.
    pub fn drain_many(&mut self, most: usize) -> bool {
        let failed = self.failed.as_deref_mut();
        let mut sides = std::iter::once(&mut self.fresh).chain(failed);
        sides.any(|side| side.ahead.drain_many(most) || side.due.drain_many(most))
    }

    /// Those that are left where some were `lost`.
    pub fn left(&self, lost: Lost) -> Pending<'_> {
        let failed = self.failed.as_deref();
        let (ahead, failed_due) = failed.map_or((&NONE, &NONE), |f| (&f.ahead, &f.due));
        Pending {
            fresh: Side {
                ahead: if lost.delayed {
                    &NONE
                } else {
                    &self.fresh.ahead
                },
                due: if lost.due { &NONE } else { &self.fresh.due },
            },
            failed: Side {
                ahead,
                due: if lost.due { &NONE } else { failed_due },
            },
        }
    }

    /// All of them.
    pub fn all(&self) -> Pending<'_> {
        self.left(Lost::default())
    }

    /// Payload bytes of those at this place.
    pub fn bytes_at(&self, place: Place) -> u64 {
        match place {
            Place::Delayed => self.fresh.ahead_bytes,
            Place::Retry => self.failed.as_ref().map_or(0, |failed| failed.ahead_bytes),
            Place::Due => self.due_bytes,
            _ => 0,
        }
    }

    fn order_mut(&mut self, place: Place, failed: bool) -> &mut GroupOrder {
        let orders = match failed {
            true => self.failed.get_or_insert_with(Box::default),
            false => &mut self.fresh,
        };
        match place {
            Place::Due => &mut orders.due,
            _ => &mut orders.ahead,
        }
    }

    fn count(&mut self, place: Place, size: u64, comes: bool) {
        if let Some(bytes) = self.bytes_mut(place) {
            *bytes = match comes {
                true => *bytes + size,
                false => bytes.saturating_sub(size),
            };
        }
    }

    fn bytes_mut(&mut self, place: Place) -> Option<&mut u64> {
        match place {
            Place::Delayed => Some(&mut self.fresh.ahead_bytes),
            Place::Retry => self.failed.as_mut().map(|failed| &mut failed.ahead_bytes),
            Place::Due => Some(&mut self.due_bytes),
            _ => None,
        }
    }

    fn tidy(&mut self) {
        if self.all().failed.is_empty() {
            self.failed = None;
        }
    }
}

impl Pending<'_> {
    /// How many there are at this place.
    pub fn count_at(self, place: Place) -> u64 {
        let count = match place {
            Place::Delayed => self.fresh.ahead.len(),
            Place::Retry => self.failed.ahead.len(),
            Place::Due => self.fresh.due.len() + self.failed.due.len(),
            _ => 0,
        };
        count as u64
    }

    /// How many there are.
    pub fn len(self) -> u64 {
        (self.fresh.len() + self.failed.len()) as u64
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}

impl<'a> Side<'a> {
    /// How many there are.
    pub fn len(self) -> usize {
        self.ahead.len() + self.due.len()
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Whether a message is one of these.
    pub fn contains(self, key: &OrderKey) -> bool {
        self.due.contains(key) || self.ahead.contains(key)
    }

    /// The first in order.
    pub fn first(self) -> Option<OrderKey> {
        self.min_of(|order| order.first().map(|(key, _)| key))
    }

    /// The first in order of those that are due at `now`.
    pub fn first_due(self, now: Millis) -> Option<OrderKey> {
        self.min_of(|order| order.first_at_most(now).map(|(key, _)| key))
    }

    /// The earliest due time.
    pub fn earliest(self) -> Option<Millis> {
        self.min_of(|order| order.min_measure().map(|due| due.0))
    }

    /// The earliest due time of those before `bound` in order.
    pub fn earliest_before(self, bound: &OrderKey) -> Option<Millis> {
        self.min_of(|order| order.least_before(bound).map(|due| due.0))
    }

    /// The due times, in no order.
    pub fn times(self) -> impl Iterator<Item = Millis> + 'a {
        let all = self.ahead.iter().chain(self.due.iter());
        all.map(|(_, due)| due.0)
    }

    /// Those that are due at `now`, in order.
    pub fn all_due(self, now: Millis) -> impl Iterator<Item = OrderKey> + 'a {
        let of = |order: &'a GroupOrder| {
            let due = order.iter().filter(move |(_, due)| due.0 <= now);
            due.map(|(key, _)| key)
        };
        merged(of(self.due), of(self.ahead))
    }

    fn min_of<T: Ord>(self, of: impl Fn(&GroupOrder) -> Option<T>) -> Option<T> {
        match (of(self.due), of(self.ahead)) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
}
