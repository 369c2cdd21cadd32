//! The table of a queue's groups: by name and number, with the counts over all of
//! them that must not take a walk.
//!
//! After a change to a group the caller calls [`Groups::settle`], which brings
//! these counts up to date and drops the group if nothing needs it any longer.

pub mod backlog;
pub mod breaker;
mod breakers;
pub mod group;
pub mod holds;
mod memory;
mod rare;

use std::collections::BTreeSet;
use std::ops::Bound;

use crate::collections::ordered::OrderedSet;
use crate::collections::slots::Slots;
use crate::collections::table::Table;
use crate::index::order_key::OrderKey;
use crate::message::id::{hash_name, NameHasher};
use crate::message::state::StoredState;
use crate::seeded::{seeded, Bug};
use crate::settings::Breaker;
use crate::{GroupIx, Millis, NEVER};
use breaker::Circuit;
use breakers::BreakerTimes;
use group::{Group, LimitedGroup};

/// Groups that share one allocation.
const NEIGHBOURS: usize = 16;
/// The groups of a queue.
#[derive(Debug, Clone, Default)]
pub struct Groups {
    hasher: NameHasher,
    /// Groups by the hashes of their names. The hash is not stored: a name is
    /// usually inline in its group, so computing the hash again when an entry moves
    /// costs one cache miss, and a smaller table stays in the cache.
    by_name: Table<GroupIx>,
    slots: Slots<Group, NEIGHBOURS>,
    /// Bytes allocated for the pending messages of all groups.
    backlog_bytes: usize,
    /// The number of groups that GROUPS lists. O(1).
    listed: usize,
    /// Bytes allocated for names that are too long to be in their groups.
    name_bytes: usize,
    /// The number of groups with an extension.
    extended: usize,
    /// The number of groups with records.
    recorded: usize,
    /// The numbers of the groups that dead messages hold.
    held: OrderedSet<u64>,
    /// The groups with settings, a pause or a breaker that is not idle. They exist even
    /// without messages.
    configured: BTreeSet<GroupIx>,
    /// When which group is to be checked again: time in ms and number of the group.
    wakes: OrderedSet<(Millis, u64)>,
    /// When breakers of groups change by themselves.
    breaker_times: BreakerTimes,
}

impl Groups {
    /// The number of groups. O(1).
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// The number of groups that GROUPS lists. O(1).
    pub fn listed(&self) -> usize {
        self.listed
    }

    /// The group with this name. O(1).
    pub fn find(&self, name: &[u8]) -> Option<GroupIx> {
        self.find_hashed(hash_name(&self.hasher, name), name)
    }

    #[inline]
    fn find_hashed(&self, hash: u64, name: &[u8]) -> Option<GroupIx> {
        let is = |ix: &GroupIx| self.name(*ix) == Some(name);
        self.by_name.find(hash, is).copied()
    }

    /// The group with this name, added if there is none. O(1).
    pub fn find_or_add(&mut self, name: &[u8]) -> GroupIx {
        let hash = hash_name(&self.hasher, name);
        if let Some(ix) = self.find_hashed(hash, name) {
            return ix;
        }
        let group = Group::new(name);
        self.name_bytes += group.name_bytes();
        let ix = GroupIx::in_slot(self.slots.add(group));
        let hash_of = hash_of_names(&self.hasher, &self.slots);
        self.by_name.insert_unique(hash, ix, hash_of);
        ix
    }

    /// The hidden group of the messages without a group whose limits have this key. O(1).
    pub(crate) fn find_hidden(&self, key: &[u8]) -> Option<GroupIx> {
        let is = |ix: &GroupIx| {
            let group = self.get(*ix);
            group.is_some_and(|group| group.is_hidden() && &*group.name == key)
        };
        let hash = hash_name(&self.hasher, key);
        self.by_name.find(hash, is).copied()
    }

    /// The hidden group of the messages without a group whose limits have this key, added
    /// if there is none. O(1).
    pub(crate) fn find_or_add_hidden(&mut self, key: &[u8]) -> GroupIx {
        if let Some(ix) = self.find_hidden(key) {
            return ix;
        }
        let mut group = Group::new(key);
        group.ext_mut().limited = Some(Box::new(LimitedGroup {
            is_hidden: true,
            home: None,
        }));
        self.name_bytes += group.name_bytes();
        let ix = GroupIx::in_slot(self.slots.add(group));
        let hash = hash_name(&self.hasher, key);
        let hash_of = hash_of_names(&self.hasher, &self.slots);
        self.by_name.insert_unique(hash, ix, hash_of);
        ix
    }

    /// The group with this number. O(1).
    #[inline]
    pub fn get(&self, ix: GroupIx) -> Option<&Group> {
        self.slots.get(ix.slot())
    }

    /// The group with this number, for changes to anything but its backlog. Call
    /// [`Groups::settle`] afterwards.
    #[inline]
    pub fn get_mut(&mut self, ix: GroupIx) -> Option<&mut Group> {
        self.slots.get_mut(ix.slot())
    }

    /// Changes a group, its backlog included, and keeps the count of memory. Call
    /// [`Groups::settle`] afterwards.
    #[inline]
    pub fn with<R>(&mut self, ix: GroupIx, change: impl FnOnce(&mut Group) -> R) -> Option<R> {
        let group = self.slots.get_mut(ix.slot())?;
        let before = group.backlog.memory_bytes();
        let result = change(group);
        let after = group.backlog.memory_bytes();
        debug_assert!(self.backlog_bytes >= before, "the backlogs are miscounted");
        self.backlog_bytes = (self.backlog_bytes + after).saturating_sub(before);
        Some(result)
    }

    /// Adds a record to a group.
    pub fn enter_record(&mut self, ix: GroupIx, stored: StoredState, key: OrderKey) {
        let Some(group) = self.get_mut(ix) else {
            return;
        };
        let records = &mut group.ext_mut().records;
        let is_first = records.is_empty();
        if let Some(of_place) = records.at_mut(stored) {
            of_place.insert(key, ());
        }
        self.recorded += usize::from(is_first);
    }

    /// Removes a record from a group, if it is there.
    pub fn leave_record(&mut self, ix: GroupIx, stored: StoredState, key: &OrderKey) {
        let Some(ext) = self.get_mut(ix).and_then(Group::ext_if_any) else {
            return;
        };
        let of_place = ext.records.at_mut(stored);
        let was_there = of_place.is_some_and(|records| records.remove(key).is_some());
        debug_assert!(was_there, "a group does not have its record");
        if was_there && ext.records.is_empty() {
            debug_assert!(self.recorded > 0, "groups with records are miscounted");
            self.recorded = self.recorded.saturating_sub(1);
        }
    }

    /// The name of a group; `None` for a hidden one.
    pub fn name(&self, ix: GroupIx) -> Option<&[u8]> {
        let group = self.get(ix).filter(|group| !group.is_hidden());
        group.map(|group| &*group.name)
    }

    /// Sets when a group is to be checked again; `None` or NEVER for not at all.
    pub fn wake_at(&mut self, ix: GroupIx, wake: Option<Millis>) {
        let wake = wake.filter(|at| *at != NEVER);
        let Some(group) = self.slots.get_mut(ix.slot()) else {
            return;
        };
        if group.ext().wake == wake {
            return;
        }
        if let Some(at) = std::mem::replace(&mut group.ext_mut().wake, wake) {
            let known = self.wakes.remove(&(at, ix.number()));
            debug_assert!(known.is_some(), "no index has the wake of a group");
        }
        if let Some(at) = wake {
            self.wakes.insert((at, ix.number()), ());
        }
    }

    /// The group that is to be checked next, and when.
    pub fn next_wake(&self) -> Option<(Millis, GroupIx)> {
        let ((at, number), ()) = self.wakes.first()?;
        Some((at, GroupIx::in_slot(number as usize)))
    }

    /// Updates all indexes that depend on a group's contents: whether it is listed, held
    /// or configured, and for which reasons. Drops the group if it is empty and has no
    /// settings.
    pub fn settle(&mut self, ix: GroupIx) {
        let Some(group) = self.slots.get_mut(ix.slot()) else {
            return;
        };
        let extended = group.tidy();
        if extended != group.extended {
            group.extended = extended;
            count(&mut self.extended, extended);
        }
        let listed = group.is_listed();
        if std::mem::replace(&mut group.listed, listed) != listed {
            count(&mut self.listed, listed);
        }
        let ext = group.ext();
        let has_breaker = ext.breaker.is_some();
        if ext.settings.is_some() || ext.paused_until.is_some() || has_breaker {
            self.configured.insert(ix);
        } else if !self.configured.is_empty() {
            self.configured.remove(&ix);
        }
        let held = !ext.holds.is_empty();
        if std::mem::replace(&mut group.held, held) != held {
            if held {
                self.held.insert(ix.number(), ());
            } else {
                let known = self.held.remove(&ix.number());
                debug_assert!(known.is_some(), "no index has a held group");
            }
        }
        // A group in the ready line is kept: its owner takes it out of the line
        // first.
        let in_use = listed || group.members > 0 || has_breaker;
        if in_use || group.is_in_line() || group.is_expected() {
            return;
        }
        self.wake_at(ix, None);
        self.extended -= usize::from(self.get(ix).is_some_and(|group| group.extended));
        let hash_of = hash_of_names(&self.hasher, &self.slots);
        self.by_name
            .remove(hash_of(&ix), |other| *other == ix, hash_of);
        self.name_bytes -= self.get(ix).map_or(0, Group::name_bytes);
        self.slots.remove(ix.slot());
        if self.by_name.is_empty() {
            self.by_name = Table::default();
        }
    }

    /// All groups from this number on, in the order of their numbers. `None` for a
    /// number that is free.
    pub fn starting_at(&self, number: u64) -> impl Iterator<Item = (GroupIx, Option<&Group>)> {
        let start = usize::try_from(number).unwrap_or(usize::MAX);
        (start..self.slots.end()).map(|ix| (GroupIx::in_slot(ix), self.slots.get(ix)))
    }

    /// The groups from this number on that dead messages hold, by number.
    pub fn held_from(&self, number: u64) -> impl Iterator<Item = GroupIx> + '_ {
        let numbers = self.held.range_from(Bound::Included(number));
        numbers.map(|(number, ())| GroupIx::in_slot(number as usize))
    }

    /// The number of groups that dead messages hold. O(1).
    pub fn held_count(&self) -> usize {
        self.held.len()
    }

    /// The number of groups with settings, a pause or a breaker that is not idle. O(1).
    pub fn configured_count(&self) -> usize {
        self.configured.len()
    }

    /// A new table with the groups that have settings, a pause or a breaker that is not
    /// idle, without messages. `rule` is the BREAKER of the queue. O(n) of those groups.
    pub fn without_messages(&self, rule: Option<&Breaker>) -> Groups {
        let mut kept = Groups {
            hasher: self.hasher.clone(),
            ..Groups::default()
        };
        for group in self.configured.iter().filter_map(|ix| self.get(*ix)) {
            let ix = match group.is_hidden() {
                true => kept.find_or_add_hidden(&group.name),
                false => kept.find_or_add(&group.name),
            };
            if let Some(copy) = kept.get_mut(ix) {
                copy.ext_mut().settings = group.ext().settings.clone();
                copy.ext_mut().paused_until = group.ext().paused_until;
                let usage = group.ext().usage.as_deref();
                let usage = usage.map(|usage| usage.without_running());
                // No usage is stored for a group without usage.
                let usage = usage
                    .filter(|usage| *usage != Default::default() || seeded(Bug::PurgeKeepsUsage));
                copy.ext_mut().usage = usage.map(Box::new);
            }
            kept.wake_at(ix, group.ext().paused_until);
            if let (Some(circuit), Some(rule)) = (&group.ext().breaker, rule) {
                let mut circuit = Circuit::clone(circuit);
                circuit.withdraw_any();
                kept.set_breaker(ix, circuit, rule);
            }
            kept.settle(ix);
        }
        kept
    }

    /// The numbers of all groups, in order. O(n).
    pub fn all(&self) -> Vec<GroupIx> {
        self.starting_at(0)
            .filter_map(|(ix, group)| group.map(|_| ix))
            .collect()
    }

    /// The number of groups with an extension. O(1).
    pub fn with_extension(&self) -> usize {
        self.extended
    }
}

/// Increases or decreases a counter by one.
fn count(counter: &mut usize, comes: bool) {
    if comes {
        *counter += 1;
    } else {
        debug_assert!(*counter > 0, "a group leaves that was not counted");
        *counter = counter.saturating_sub(1);
    }
}

/// The hash function for the entries of the table by name.
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
    fn an_empty_group_without_settings_is_dropped() {
        let mut groups = Groups::default();
        let ix = groups.find_or_add(b"a");
        assert_eq!(groups.find(b"a"), Some(ix));
        groups.settle(ix);
        assert_eq!(groups.find(b"a"), None);
        assert_eq!(groups.listed(), 0);
    }
}
