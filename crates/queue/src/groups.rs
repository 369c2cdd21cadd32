//! The table of a queue's groups.

use std::collections::BTreeSet;

use super::backlog::Pending;
use super::footprint::allocated;
use super::group::{Group, GroupExtension, GroupIx, GroupSettings};
use super::id::{hash_name, NameHasher};
use super::order_key::OrderKey;
use super::ordered::OrderedSet;
use super::purges::{Purged, Purges};
use super::reasons::Reasons;
use super::slots::Slots;
use super::state::Place;
use super::table::Table;
use super::{Millis, NEVER};

/// Groups that take one allocation together.
const NEIGHBOURS: usize = 16;
/// What a name takes, more or less.
const NAME: usize = 16;
/// So much of what one group has very many of is freed at a time.
const AT_A_TIME: usize = 1024;

/// The groups of a queue.
#[derive(Debug, Clone, Default)]
pub struct Groups {
    hasher: NameHasher,
    /// By the hashes of their names. A name usually lies in its group, so that one wait for
    /// memory finds it where an entry moves; the smaller the table, the more of it is
    /// at hand.
    by_name: Table<GroupIx>,
    slots: Slots<Group, NEIGHBOURS>,
    /// Bytes allocated for what all of them have pending.
    backlog_bytes: usize,
    /// How many groups are listed for which reasons.
    listed: [usize; Reasons::ALL],
    /// The purges that took from all groups.
    purges: Purges,
    /// How many have what only some have.
    extended: usize,
    /// How many have records.
    recorded: usize,
    /// The numbers of those that are held by dead messages.
    held: OrderedSet<u64>,
    /// Those with settings or a pause, which outlive their messages.
    configured: BTreeSet<GroupIx>,
    /// When to look at which group again.
    wakes: OrderedSet<(Millis, u64)>,
}

impl Groups {
    /// How many groups there are.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// How many groups GROUPS would list.
    pub fn listed(&self) -> usize {
        self.listed.iter().skip(1).sum()
    }

    /// The purges that took from all groups.
    pub fn purges(&self) -> &Purges {
        &self.purges
    }

    /// The pending messages of one.
    pub fn pending<'a>(&self, group: &'a Group) -> Pending<'a> {
        group.pending(&self.purges)
    }

    /// Whether GROUPS lists it.
    pub fn shows(&self, group: &Group) -> bool {
        group.reasons(&self.purges) != Reasons::default()
    }

    /// Nothing holds any group any longer. O(1); the numbers of those that were
    /// held, which are of no use any longer, are the caller's to free.
    pub fn purge_holds(&mut self) -> OrderedSet<u64> {
        self.purge(Purged::Holds);
        std::mem::take(&mut self.held)
    }

    /// All that groups have in a state is gone. O(1).
    pub fn purge(&mut self, purged: Purged) {
        self.purges.count(purged);
        for number in 0..Reasons::ALL {
            let left = Reasons::numbered(number).without(purged).number();
            if left != number {
                let moved = self.listed.get_mut(number).map_or(0, std::mem::take);
                if let Some(count) = self.listed.get_mut(left) {
                    *count += moved;
                }
            }
        }
    }

    /// A group knows of all purges from now on.
    pub fn heed(&mut self, ix: GroupIx) {
        let purges = &self.purges;
        if let Some(group) = self.slots.get_mut(ix.slot()) {
            group.reasons = group.reasons.since(group.known, purges);
            group.known = purges.all();
        }
    }

    /// The group of this name.
    pub fn find(&self, name: &[u8]) -> Option<GroupIx> {
        self.find_hashed(hash_name(&self.hasher, name), name)
    }

    #[inline]
    fn find_hashed(&self, hash: u64, name: &[u8]) -> Option<GroupIx> {
        let is = |ix: &GroupIx| self.name(*ix) == Some(name);
        self.by_name.find(hash, is).copied()
    }

    /// The group of this name, made if there is none.
    pub fn find_or_add(&mut self, name: &[u8]) -> GroupIx {
        let hash = hash_name(&self.hasher, name);
        if let Some(ix) = self.find_hashed(hash, name) {
            return ix;
        }
        let group = Group::new(name, self.purges.all());
        let ix = GroupIx::in_slot(self.slots.add(group));
        let hash_of = hash_of_names(&self.hasher, &self.slots);
        self.by_name.insert_unique(hash, ix, hash_of);
        ix
    }

    /// The group with this number.
    #[inline]
    pub fn get(&self, ix: GroupIx) -> Option<&Group> {
        self.slots.get(ix.slot())
    }

    /// The same, to change all but what it has pending; call [`Groups::settle`]
    /// afterwards.
    #[inline]
    pub fn get_mut(&mut self, ix: GroupIx) -> Option<&mut Group> {
        self.slots.get_mut(ix.slot())
    }

    /// Changes a group and what it has pending; call [`Groups::settle`] afterwards.
    #[inline]
    pub fn with<R>(&mut self, ix: GroupIx, change: impl FnOnce(&mut Group) -> R) -> Option<R> {
        let group = self.slots.get_mut(ix.slot())?;
        let before = group.backlog.memory_bytes();
        let result = change(group);
        let after = group.backlog.memory_bytes();
        self.backlog_bytes = (self.backlog_bytes + after).saturating_sub(before);
        Some(result)
    }

    /// Enters a record of a group.
    pub fn enter_record(&mut self, ix: GroupIx, place: Place, key: OrderKey) {
        let Some(group) = self.get_mut(ix) else {
            return;
        };
        let records = &mut group.ext_mut().records;
        let is_first = records.is_empty();
        if let Some(of_place) = records.at_mut(place) {
            of_place.insert(key, ());
        }
        self.recorded += usize::from(is_first);
    }

    /// Takes a record of a group out.
    pub fn leave_record(&mut self, ix: GroupIx, place: Place, key: &OrderKey) {
        let Some(ext) = self.get_mut(ix).and_then(Group::ext_if_any) else {
            return;
        };
        let of_place = ext.records.at_mut(place);
        let was_there = of_place.is_some_and(|records| records.remove(key).is_some());
        if was_there && ext.records.is_empty() {
            self.recorded = self.recorded.saturating_sub(1);
        }
    }

    /// Takes out all records of a group at a place, if they are more than
    /// `few`.
    pub fn take_records(
        &mut self,
        ix: GroupIx,
        place: Place,
        few: usize,
    ) -> Option<OrderedSet<OrderKey>> {
        let ext = self.get_mut(ix)?.ext_if_any()?;
        let records = ext.records.at_mut(place)?;
        if records.len() <= few {
            return None;
        }
        let records = std::mem::take(records);
        if ext.records.is_empty() {
            self.recorded = self.recorded.saturating_sub(1);
        }
        Some(records)
    }

    /// Its name.
    pub fn name(&self, ix: GroupIx) -> Option<&[u8]> {
        self.get(ix).map(|group| &*group.name)
    }

    /// Sets when a group is to be looked at again, or never.
    pub fn wake_at(&mut self, ix: GroupIx, wake: Option<Millis>) {
        let wake = wake.filter(|at| *at != NEVER);
        let Some(group) = self.slots.get_mut(ix.slot()) else {
            return;
        };
        if group.ext().wake == wake {
            return;
        }
        if let Some(at) = std::mem::replace(&mut group.ext_mut().wake, wake) {
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
        let Some(group) = self.slots.get_mut(ix.slot()) else {
            return;
        };
        let extended = group.tidy();
        if extended != group.extended {
            group.extended = extended;
            self.extended = match extended {
                true => self.extended + 1,
                false => self.extended.saturating_sub(1),
            };
        }
        let before = group.reasons.since(group.known, &self.purges);
        group.reasons = group.reasons(&self.purges);
        let listed = group.reasons != Reasons::default();
        let ext = group.ext();
        if ext.settings.is_some() || ext.paused_until.is_some() {
            self.configured.insert(ix);
        } else if !self.configured.is_empty() {
            self.configured.remove(&ix);
        }
        if before != group.reasons {
            for (reasons, comes) in [(before, false), (group.reasons, true)] {
                if let Some(count) = self.listed.get_mut(reasons.number()) {
                    *count = match comes {
                        true => *count + 1,
                        false => count.saturating_sub(1),
                    };
                }
            }
        }
        let held = group.reasons.has(Reasons::HELD);
        if held != before.has(Reasons::HELD) {
            if held {
                self.held.insert(ix.number(), ());
            } else {
                self.held.remove(&ix.number());
            }
        }
        // One that still stands in the line is taken out of it first.
        if listed || group.members > 0 || group.is_in_line() || group.is_expected() {
            return;
        }
        self.wake_at(ix, None);
        self.extended -= usize::from(self.get(ix).is_some_and(|group| group.extended));
        let hash_of = hash_of_names(&self.hasher, &self.slots);
        self.by_name
            .remove(hash_of(&ix), |other| *other == ix, hash_of);
        self.slots.remove(ix.slot());
        if self.by_name.is_empty() {
            self.by_name = Table::default();
        }
    }

    /// All groups from this number on, in the order of their numbers.
    pub fn starting_at(&self, number: u64) -> impl Iterator<Item = (GroupIx, Option<&Group>)> {
        let start = usize::try_from(number).unwrap_or(usize::MAX);
        (start..self.slots.end()).map(|ix| (GroupIx::in_slot(ix), self.slots.get(ix)))
    }

    /// The groups that dead messages hold.
    pub fn held(&self) -> impl Iterator<Item = GroupIx> + '_ {
        let numbers = self.held.iter();
        numbers.map(|(number, ())| GroupIx::in_slot(number as usize))
    }

    /// How many groups dead messages hold.
    pub fn held_count(&self) -> usize {
        self.held.len()
    }

    /// How many groups have settings or a pause.
    pub fn configured_count(&self) -> usize {
        self.configured.len()
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
                copy.ext_mut().settings = group.ext().settings.clone();
                copy.ext_mut().paused_until = group.ext().paused_until;
            }
            kept.wake_at(ix, group.ext().paused_until);
            kept.settle(ix);
        }
        kept
    }

    /// Frees up to `most` groups, or some of what one has very many of; `false`
    /// when there are none left. For freeing a large table in slices; it is of
    /// no other use afterwards.
    pub fn drop_some(&mut self, most: usize) -> bool {
        for _ in (0..most).step_by(NEIGHBOURS) {
            let Some(mut groups) = self.slots.last_page() else {
                return self.wakes.drain_some(AT_A_TIME) + self.held.drain_some(AT_A_TIME) > 0;
            };
            if groups.any(|group| group.drain_many(AT_A_TIME)) {
                return true;
            }
            drop(groups);
            self.slots.drop_last_page();
        }
        true
    }

    /// The numbers of all groups.
    pub fn all(&self) -> Vec<GroupIx> {
        self.starting_at(0)
            .filter_map(|(ix, group)| group.map(|_| ix))
            .collect()
    }

    /// Bytes allocated, roughly; the orders of their records not included, but
    /// for the room that each has for its first ones. O(groups held).
    pub fn memory_bytes(&self) -> usize {
        const EXTENSION: usize = allocated(size_of::<GroupExtension>());
        const FIRST_RECORDS: usize = 2 * size_of::<OrderKey>();
        let held = self.held().filter_map(|ix| self.get(ix));
        let holds: usize = held.map(|group| group.ext().holds.memory_bytes()).sum();
        self.by_name.allocation_size()
            + self.slots.memory_bytes()
            + self.backlog_bytes
            + self.recorded * FIRST_RECORDS
            + self.extended * EXTENSION
            + self.configured.len() * (allocated(size_of::<GroupSettings>()) + NAME)
            + holds
            + self.held.memory_bytes()
            + self.wakes.memory_bytes()
    }
}

/// How the table by name computes the hash of an entry.
fn hash_of_names<'a>(
    hasher: &'a NameHasher,
    slots: &'a Slots<Group, NEIGHBOURS>,
) -> impl Fn(&GroupIx) -> u64 + 'a {
    |ix| {
        let group = slots.get(ix.slot());
        hash_name(hasher, group.map_or(&[], |group| &group.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
