//! Groups: messages that are given in their own order, a few at a time.

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use super::footprint::allocated;
use super::id::{hash_name, NameHasher, GENERATED_LEN};
use super::line::{LineKey, Places};
use super::long_list::LongList;
use super::name_table::NameTable;
use super::ordered::{MinTime, OrderedSet};
use super::rate::RateWindow;
use super::records::GroupRecords;
use super::settings::Rate;
use super::state::Place;
use super::{Millis, Seq, NEVER};

/// Names a group within its queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupIx(
    /// The number of its slot and one: an optional place in line needs no more
    /// room than a place.
    NonZeroU32,
);

impl GroupIx {
    /// No group.
    pub const NONE: GroupIx = GroupIx(NonZeroU32::MAX);

    /// The group in this slot.
    fn in_slot(slot: usize) -> GroupIx {
        let number = u32::try_from(slot)
            .ok()
            .and_then(|slot| slot.checked_add(1));
        number
            .and_then(NonZeroU32::new)
            .map_or(GroupIx::NONE, GroupIx)
    }

    fn slot(self) -> usize {
        self.0.get() as usize - 1
    }

    /// Whether it names a group.
    pub fn is_some(self) -> bool {
        self != GroupIx::NONE
    }

    /// The number of its slot: stable as long as the group exists.
    pub fn number(self) -> u64 {
        u64::from(self.0.get()) - 1
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
    pub running: u32,
    /// Batches leased.
    pub batches: u32,
    /// Messages and records that name it.
    pub members: u32,
    /// Its records, if it has any.
    pub records: Option<Box<GroupRecords>>,
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
            records: None,
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

    /// Its records at a place, if it has any.
    pub fn records_at(&self, place: Place) -> Option<&OrderedSet<OrderKey>> {
        self.records.as_ref()?.at(place)
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

/// What a name takes, more or less.
const NAME: usize = 16;

/// The groups of a queue.
#[derive(Debug, Clone, Default)]
pub struct Groups {
    hasher: NameHasher,
    by_name: NameTable<GroupIx>,
    slots: LongList<Option<Box<Group>>>,
    free: LongList<GroupIx>,
    listed: usize,
    /// How many have records.
    recorded: usize,
    /// Those that are held by dead messages.
    held: BTreeSet<GroupIx>,
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
        let ix = self.free.pop_back().unwrap_or_else(|| {
            self.slots.push_back(None);
            GroupIx::in_slot(self.slots.len() - 1)
        });
        if let Some(slot) = self.slots.get_mut(ix.slot()) {
            *slot = Some(group);
        }
        let hash = hash_name(&self.hasher, name);
        self.by_name.insert_unique(hash, ix);
        ix
    }

    /// The group with this number.
    pub fn get(&self, ix: GroupIx) -> Option<&Group> {
        self.slots.get(ix.slot())?.as_deref()
    }

    /// The same, to change; call [`Groups::settle`] afterwards.
    pub fn get_mut(&mut self, ix: GroupIx) -> Option<&mut Group> {
        self.slots.get_mut(ix.slot())?.as_deref_mut()
    }

    /// Enters a record of a group.
    pub fn enter_record(&mut self, ix: GroupIx, place: Place, key: OrderKey) {
        let Some(group) = self.get_mut(ix) else {
            return;
        };
        let is_first = group.records.is_none();
        let records = group.records.get_or_insert_with(Box::default);
        if let Some(of_place) = records.at_mut(place) {
            of_place.insert(key, ());
        }
        self.recorded += usize::from(is_first);
    }

    /// Takes a record of a group out.
    pub fn leave_record(&mut self, ix: GroupIx, place: Place, key: &OrderKey) {
        let Some(group) = self.get_mut(ix) else {
            return;
        };
        let Some(records) = &mut group.records else {
            return;
        };
        if let Some(of_place) = records.at_mut(place) {
            of_place.remove(key);
        }
        if records.is_empty() {
            group.records = None;
            self.recorded = self.recorded.saturating_sub(1);
        }
    }

    /// Its name.
    pub fn name(&self, ix: GroupIx) -> Option<&[u8]> {
        self.get(ix).map(|group| &*group.name)
    }

    /// Sets when a group is to be looked at again, or never.
    pub fn wake_at(&mut self, ix: GroupIx, wake: Option<Millis>) {
        let wake = wake.filter(|at| *at != NEVER);
        let Some(group) = self.slots.get_mut(ix.slot()).and_then(Option::as_mut) else {
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
        Some((at, GroupIx::in_slot(number as usize)))
    }

    /// Brings what depends on a group's contents up to date: whether it is
    /// listed, and whether it is still needed at all.
    pub fn settle(&mut self, ix: GroupIx) {
        let Some(group) = self.slots.get_mut(ix.slot()).and_then(Option::as_mut) else {
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
            if held {
                self.held.insert(ix);
            } else {
                self.held.remove(&ix);
            }
        }
        // One that still stands in the line is taken out of it first.
        if listed || group.members > 0 || group.line.is_some() || !group.expected.is_empty() {
            return;
        }
        self.wake_at(ix, None);
        let hash = hash_name(&self.hasher, self.name(ix).unwrap_or_default());
        self.by_name.remove(hash, |other| *other == ix);
        if let Some(slot) = self.slots.get_mut(ix.slot()) {
            *slot = None;
        }
        self.free.push_back(ix);
        if self.by_name.is_empty() {
            self.slots = LongList::default();
            self.free = LongList::default();
            self.by_name = NameTable::default();
        }
    }

    /// All groups from this number on, in the order of their numbers.
    pub fn starting_at(&self, number: u64) -> impl Iterator<Item = (GroupIx, Option<&Group>)> {
        let start = usize::try_from(number).unwrap_or(usize::MAX);
        (start..self.slots.len()).filter_map(|ix| {
            let group = self.slots.get(ix)?;
            Some((GroupIx::in_slot(ix), group.as_deref()))
        })
    }

    /// The groups that dead messages hold.
    pub fn held(&self) -> Vec<GroupIx> {
        self.held.iter().copied().collect()
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
            if self.slots.pop_back().is_none() {
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

    /// Bytes allocated, roughly; the orders of the groups not included, but
    /// for the room that each has for its first messages and records. O(groups
    /// held).
    pub fn memory_bytes(&self) -> usize {
        const FIRST: usize = 2 * size_of::<(OrderKey, MinTime)>();
        const FIRST_RECORDS: usize = size_of::<GroupRecords>() + 2 * size_of::<OrderKey>();
        // Ids that were generated are the usual ones.
        const HOLD: usize = size_of::<(Seq, Box<[u8]>)>() + allocated(GENERATED_LEN);
        let holds = self.held.iter().filter_map(|ix| self.get(*ix));
        let holds: usize = holds.map(|group| group.held_by.len().max(2) * HOLD).sum();
        self.by_name.allocation_size()
            + self.by_name.len() * (allocated(size_of::<Group>()) + NAME)
            + self.listed.saturating_sub(self.configured.len()) * FIRST
            + self.recorded * FIRST_RECORDS
            + self.configured.len() * (allocated(size_of::<GroupSettings>()) + 2 * NAME)
            + holds
            + self.slots.memory_bytes()
            + self.wakes.memory_bytes()
    }
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
