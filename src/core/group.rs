//! Groups: messages that are given in their own order, a few at a time.

use std::collections::BTreeSet;

use hashbrown::HashTable;

use super::id::{hash_name, NameHasher};
use super::line::{LineKey, Places};
use super::ordered::{MinTime, OrderedSet};
use super::rate::RateWindow;
use super::settings::Rate;
use super::{Millis, Seq, NEVER};

/// Names a group within its queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupIx(u32);

impl GroupIx {
    /// No group.
    pub const NONE: GroupIx = GroupIx(u32::MAX);

    /// Whether it names a group.
    pub fn is_some(self) -> bool {
        self != GroupIx::NONE
    }

    /// The number of its slot: stable as long as the group exists.
    pub fn number(self) -> u64 {
        u64::from(self.0)
    }
}

/// A place in the order of a group: priority, then score, then send order,
/// packed so that keys compare as places do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OrderKey(u64, u64);

impl OrderKey {
    /// The place of a message. `seq` below 2^56, `score` a number.
    pub fn new(priority: i8, score: f64, seq: Seq) -> OrderKey {
        let priority = u64::from((priority as u8) ^ 0x80);
        // Adding zero makes -0.0 the same place as 0.0.
        let bits = (score + 0.0).to_bits();
        let ordered = match bits >> 63 {
            0 => bits ^ (1 << 63),
            _ => !bits,
        };
        OrderKey(
            priority << 56 | ordered >> 8,
            ordered << 56 | seq & (u64::MAX >> 8),
        )
    }

    /// Below every place of this priority, above those that go before it.
    pub fn start_of(priority: i8) -> OrderKey {
        let priority = u64::from((priority as u8) ^ 0x80);
        OrderKey(priority << 56, 0)
    }

    /// The message's number.
    pub fn seq(self) -> Seq {
        self.1 & (u64::MAX >> 8)
    }

    /// The message's priority.
    pub fn priority(self) -> i8 {
        (((self.0 >> 56) as u8) ^ 0x80) as i8
    }
}

/// Messages in the order of their group, each with its due time.
pub type GroupOrder = OrderedSet<OrderKey, MinTime>;

/// What GROUPSET said of a group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupSettings {
    /// Messages given in one turn; 0 for the default, 1.
    pub weight: u64,
    /// Batches leased at once; 0 for the queue's own number.
    pub concurrency: u64,
    /// Limit of its deliveries, if any.
    pub rate: Option<Rate>,
    /// What that limit has to count.
    pub window: RateWindow,
}

/// One group.
#[derive(Debug, Clone)]
pub struct Group {
    /// As SEND named it.
    pub name: Box<[u8]>,
    /// Its pending messages that have not failed.
    pub order: GroupOrder,
    /// Its pending messages that have failed.
    pub failed: GroupOrder,
    /// How many of all pending ones are due.
    pub due: u64,
    /// How many of the failed ones wait for their backoff.
    pub retrying: u64,
    /// Payload bytes of all pending ones.
    pub bytes: u64,
    /// Messages leased.
    pub running: u64,
    /// Batches leased.
    pub batches: u64,
    /// Messages and records that name it.
    pub members: u64,
    /// Dead messages that hold it: their numbers and ids.
    pub held_by: Vec<(Seq, Box<[u8]>)>,
    /// Until when it is paused; NEVER for without end.
    pub paused_until: Option<Millis>,
    /// What GROUPSET said.
    pub settings: Option<Box<GroupSettings>>,
    /// Its place in the line, if it can give.
    pub line: Option<LineKey>,
    /// The places that time will give it, as far as they are known already.
    pub expected: Places,
    /// Messages given in the present turn.
    pub turn: u64,
    /// When to look at it again though nothing happens to it.
    pub wake: Option<Millis>,
    /// Its share of the queue's count of ready messages.
    pub ready: u64,
    listed: bool,
    held: bool,
}

impl Group {
    fn new(name: &[u8]) -> Group {
        Group {
            name: name.into(),
            order: GroupOrder::new(),
            failed: GroupOrder::new(),
            due: 0,
            retrying: 0,
            bytes: 0,
            running: 0,
            batches: 0,
            members: 0,
            held_by: Vec::new(),
            paused_until: None,
            settings: None,
            line: None,
            expected: Places::new(),
            turn: 0,
            wake: None,
            ready: 0,
            listed: false,
            held: false,
        }
    }

    /// Messages that wait for a delivery.
    pub fn pending(&self) -> u64 {
        (self.order.len() + self.failed.len()) as u64
    }

    /// Messages given in one turn.
    pub fn weight(&self) -> u64 {
        self.settings.as_ref().map_or(1, |s| s.weight.max(1))
    }

    /// Its limit of deliveries, if it has one of its own.
    pub fn rate(&self) -> Option<(Rate, &RateWindow)> {
        let settings = self.settings.as_ref()?;
        Some((settings.rate?, &settings.window))
    }

    /// Messages it may still give at `now` by its own limit.
    pub fn allowance(&self, now: Millis) -> u64 {
        self.rate()
            .map_or(u64::MAX, |(rate, window)| window.free(rate, now))
    }

    /// Whether it is paused at `now`.
    pub fn is_paused(&self, now: Millis) -> bool {
        self.paused_until.is_some_and(|until| until > now)
    }

    /// Where time has let it stand by `now`, if the line does not know it yet.
    pub fn given_place(&self, now: Millis) -> Option<LineKey> {
        let given = self.expected.iter().rev();
        given.copied().find(|key| key.join.time <= now)
    }

    /// From when on pause and limit let it give, as far as that is known: 0 or
    /// a time that has passed where they do not hold it, NEVER without end.
    pub fn opens_at(&self) -> Millis {
        let limit = self
            .rate()
            .map_or(0, |(rate, window)| window.next_free(rate, 0));
        self.paused_until.unwrap_or(0).max(limit)
    }

    /// Whether it has anything that GROUPS shows.
    pub fn is_listed(&self) -> bool {
        self.pending() > 0
            || self.running > 0
            || self.settings.is_some()
            || self.paused_until.is_some()
            || !self.held_by.is_empty()
    }
}

/// The groups of a queue.
#[derive(Debug, Clone, Default)]
pub struct Groups {
    hasher: NameHasher,
    by_name: HashTable<GroupIx>,
    slots: Vec<Option<Box<Group>>>,
    free: Vec<u32>,
    listed: usize,
    /// How many are held by dead messages.
    held: usize,
    /// Those with settings or a pause, which outlive their messages.
    configured: BTreeSet<GroupIx>,
    /// When to look at which group again.
    wakes: OrderedSet<(Millis, u64)>,
}

impl Groups {
    /// How many groups GROUPS would list.
    pub fn listed(&self) -> usize {
        self.listed
    }

    /// The group of this name.
    pub fn find(&self, name: &[u8]) -> Option<GroupIx> {
        let hash = hash_name(&self.hasher, name);
        self.by_name
            .find(hash, |ix| self.name(*ix) == Some(name))
            .copied()
    }

    /// The group of this name, made if there is none.
    pub fn find_or_add(&mut self, name: &[u8]) -> GroupIx {
        if let Some(ix) = self.find(name) {
            return ix;
        }
        let group = Box::new(Group::new(name));
        let ix = match self.free.pop() {
            Some(ix) => ix,
            None => {
                self.slots.push(None);
                (self.slots.len() - 1) as u32
            }
        };
        if let Some(slot) = self.slots.get_mut(ix as usize) {
            *slot = Some(group);
        }
        let hash = hash_name(&self.hasher, name);
        let (hasher, slots) = (&self.hasher, &self.slots);
        self.by_name.insert_unique(hash, GroupIx(ix), |ix| {
            let name = slot(slots, *ix).map(|group| &*group.name);
            hash_name(hasher, name.unwrap_or_default())
        });
        GroupIx(ix)
    }

    /// The group with this number.
    pub fn get(&self, ix: GroupIx) -> Option<&Group> {
        slot(&self.slots, ix)
    }

    /// The same, to change; call [`Groups::settle`] afterwards.
    pub fn get_mut(&mut self, ix: GroupIx) -> Option<&mut Group> {
        self.slots.get_mut(ix.0 as usize)?.as_deref_mut()
    }

    /// Its name.
    pub fn name(&self, ix: GroupIx) -> Option<&[u8]> {
        self.get(ix).map(|group| &*group.name)
    }

    /// Sets when a group is to be looked at again, or never.
    pub fn wake_at(&mut self, ix: GroupIx, wake: Option<Millis>) {
        let wake = wake.filter(|at| *at != NEVER);
        let Some(group) = self.slots.get_mut(ix.0 as usize).and_then(Option::as_mut) else {
            return;
        };
        if group.wake == wake {
            return;
        }
        if let Some(at) = std::mem::replace(&mut group.wake, wake) {
            self.wakes.remove(&(at, ix.number()));
        }
        if let Some(at) = wake {
            self.wakes.insert((at, ix.number()), ());
        }
    }

    /// The group that is to be looked at next: when, and which.
    pub fn next_wake(&self) -> Option<(Millis, GroupIx)> {
        let ((at, number), ()) = self.wakes.first()?;
        Some((at, GroupIx(number as u32)))
    }

    /// Brings what depends on a group's contents up to date: whether it is
    /// listed, and whether it is still needed at all.
    pub fn settle(&mut self, ix: GroupIx) {
        let Some(group) = self.slots.get_mut(ix.0 as usize).and_then(Option::as_mut) else {
            return;
        };
        let listed = group.is_listed();
        if group.settings.is_some() || group.paused_until.is_some() {
            self.configured.insert(ix);
        } else if !self.configured.is_empty() {
            self.configured.remove(&ix);
        }
        if listed != group.listed {
            group.listed = listed;
            if listed {
                self.listed += 1;
            } else {
                self.listed = self.listed.saturating_sub(1);
            }
        }
        let held = !group.held_by.is_empty();
        if held != group.held {
            group.held = held;
            self.held = if held {
                self.held + 1
            } else {
                self.held.saturating_sub(1)
            };
        }
        // One that still stands in the line is taken out of it first.
        if listed || group.members > 0 || group.line.is_some() || !group.expected.is_empty() {
            return;
        }
        self.wake_at(ix, None);
        let hash = hash_name(&self.hasher, self.name(ix).unwrap_or_default());
        if let Ok(entry) = self.by_name.find_entry(hash, |other| *other == ix) {
            let (_, _) = entry.remove();
        }
        if let Some(slot) = self.slots.get_mut(ix.0 as usize) {
            *slot = None;
        }
        self.free.push(ix.0);
        if self.by_name.is_empty() {
            self.slots = Vec::new();
            self.free = Vec::new();
            self.by_name = HashTable::new();
        }
    }

    /// All groups from this number on, in the order of their numbers.
    pub fn starting_at(&self, number: u64) -> impl Iterator<Item = (GroupIx, Option<&Group>)> {
        let start = usize::try_from(number).unwrap_or(usize::MAX);
        self.slots
            .iter()
            .enumerate()
            .skip(start)
            .map(|(ix, group)| (GroupIx(ix as u32), group.as_deref()))
    }

    /// Whether a dead message holds any group. O(1).
    pub fn any_held(&self) -> bool {
        self.held > 0
    }

    /// A table of the groups that have settings or a pause, without their
    /// messages.
    pub fn without_messages(&self) -> Groups {
        let mut kept = Groups {
            hasher: self.hasher.clone(),
            ..Groups::default()
        };
        for group in self.configured.iter().filter_map(|ix| self.get(*ix)) {
            let ix = kept.find_or_add(&group.name);
            if let Some(copy) = kept.get_mut(ix) {
                copy.settings = group.settings.clone();
                copy.paused_until = group.paused_until;
            }
            kept.wake_at(ix, group.paused_until);
            kept.settle(ix);
        }
        kept
    }

    /// Frees up to `most` groups; `false` when there are none left. For
    /// freeing a large table in slices; it is of no other use afterwards.
    pub fn drop_some(&mut self, most: usize) -> bool {
        for _ in 0..most {
            if self.slots.pop().is_none() {
                return false;
            }
        }
        true
    }

    /// The numbers of all groups.
    pub fn all(&self) -> Vec<GroupIx> {
        self.starting_at(0)
            .filter_map(|(ix, group)| group.map(|_| ix))
            .collect()
    }

    /// Bytes allocated by the tables; the groups' own orders not included.
    pub fn memory_bytes(&self) -> usize {
        self.by_name.allocation_size()
            + self.by_name.len() * size_of::<Group>()
            + self.slots.capacity() * size_of::<Option<Box<Group>>>()
            + self.wakes.memory_bytes()
    }
}

fn slot(slots: &[Option<Box<Group>>], ix: GroupIx) -> Option<&Group> {
    slots.get(ix.0 as usize)?.as_deref()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_by_priority_then_score_then_send_order() {
        let sorted = [
            OrderKey::new(-128, 9.0, 9),
            OrderKey::new(0, -1e300, 9),
            OrderKey::new(0, -1.0, 9),
            OrderKey::new(0, 0.0, 1),
            OrderKey::new(0, -0.0, 2),
            OrderKey::new(0, 1.5, 1),
            OrderKey::new(127, -1e300, 1),
        ];
        assert!(sorted.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(sorted[1].priority(), 0);
        assert_eq!(sorted[0].priority(), -128);
        assert_eq!(sorted[6].priority(), 127);
        assert_eq!(sorted[5].seq(), 1);
    }

    #[test]
    fn a_group_that_is_empty_and_has_no_settings_is_gone() {
        let mut groups = Groups::default();
        let ix = groups.find_or_add(b"a");
        assert_eq!(groups.find(b"a"), Some(ix));
        groups.settle(ix);
        assert_eq!(groups.find(b"a"), None);
        assert_eq!(groups.listed(), 0);
    }
}
