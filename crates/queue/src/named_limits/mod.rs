//! Limits with names (DQ.LIMIT): the rule of each, its usage, and the groups that wait
//! for it.
//!
//! A message names its limits (LIMITS). The group of such a message stands in the line of
//! one of these limits, and not in the ready line itself. For each limit only the first
//! group is in the ready line, too, and only if the limit has room for its next message.
//! So groups that wait for a full limit cost nothing, however many they are, and when the
//! limit has room again, one of them comes back for each message that it has room for.
//!
//! Messages without a group form hidden groups: one for each set of limits.

mod between;
mod limit;
mod patterns;
mod rule;
mod rules;
mod texts;

use crate::collections::ordered::OrderedSet;
use crate::collections::rate_window::RateWindow;
use crate::collections::slots::Slots;
use crate::collections::table::Table;
use crate::index::ready_line::Position;
use crate::message::id::{hash_name, NameHasher};
use crate::message::limited::Limited;
use crate::sums::Sum;
use crate::{LimitIx, Millis};
use smallvec::SmallVec;

pub use limit::{Limit, Taken};
use patterns::Patterns;
pub use rule::{LimitRule, MAX_WINDOWS};
pub use rules::{MAX_BETWEEN, MAX_NESTED, MAX_PARTS, MAX_PATTERNS};

/// Limits that share one allocation.
const NEIGHBOURS: usize = 8;
/// The limits of a message, as far as they are counted.
pub type Touched = SmallVec<[LimitIx; 4]>;

/// All limits of a queue.
#[derive(Debug, Clone, Default)]
pub struct NamedLimits {
    hasher: NameHasher,
    by_name: Table<LimitIx>,
    slots: Slots<Limit, NEIGHBOURS>,
    patterns: Patterns,
    /// The times of the next checks of limits: time in ms and number of the slot.
    times: OrderedSet<(Millis, u64)>,
}

impl NamedLimits {
    /// The limit with this name, or the pattern. O(1).
    pub fn find(&self, name: &[u8]) -> Option<LimitIx> {
        let hash = hash_name(&self.hasher, name);
        let is = |ix: &LimitIx| self.get(*ix).is_some_and(|limit| *limit.name == *name);
        self.by_name.find(hash, is).copied()
    }

    /// The limit with this number. O(1).
    pub fn get(&self, ix: LimitIx) -> Option<&Limit> {
        self.slots.get(ix.slot())
    }

    /// The limit with this number, for changes of the groups that wait for it.
    pub(crate) fn get_mut(&mut self, ix: LimitIx) -> Option<&mut Limit> {
        self.slots.get_mut(ix.slot())
    }

    /// All limits and patterns from this number on, each with its number.
    pub fn starting_at(&self, number: u64) -> impl Iterator<Item = (LimitIx, &Limit)> {
        let start = usize::try_from(number).unwrap_or(usize::MAX);
        (start..self.slots.end())
            .filter_map(|slot| Some((LimitIx::in_slot(slot), self.slots.get(slot)?)))
    }

    /// The positions of all groups that wait for a limit, in no order.
    pub fn positions(&self) -> impl Iterator<Item = Position> + '_ {
        let limits = self.starting_at(0).map(|(_, limit)| limit);
        limits.flat_map(|limit| {
            let waiting = limit.line.iter().chain(limit.too_large.iter());
            waiting.map(|(key, ())| key)
        })
    }

    /// The limit with this name, added if it is not there. O(1), and O(length of the name) if
    /// it is added.
    pub(crate) fn find_or_add(&mut self, name: &[u8]) -> LimitIx {
        if let Some(ix) = self.find(name) {
            return ix;
        }
        let ix = LimitIx::in_slot(self.slots.add(Limit::new(name)));
        let hash = hash_name(&self.hasher, name);
        let hash_of = hash_of_names(&self.hasher, &self.slots);
        self.by_name.insert_unique(hash, ix, hash_of);
        self.govern(ix);
        ix
    }

    /// Counts a message that runs, and whose delivery is counted already.
    pub(crate) fn count_running(&mut self, of: &Limited) {
        for name in &of.names {
            let ix = self.find_or_add(name);
            if let Some(limit) = self.get_mut(ix) {
                limit.run(of.cost);
            }
        }
    }

    /// Counts a delivery in all limits of a message. Returns them.
    pub(crate) fn count(&mut self, of: &Limited, now: Millis, is_leased: bool) -> Touched {
        let names = of.names.iter();
        let touched = names.filter_map(|name| {
            // A delivery without a lease only counts in windows.
            let is_counted = is_leased || self.rule_for(name).is_some();
            let ix = is_counted.then(|| self.find_or_add(name))?;
            self.get_mut(ix)?.count(of.cost, now, is_leased);
            Some(ix)
        });
        touched.collect()
    }

    /// Corrects the cost of a delivery that began at `at`. Returns its limits.
    pub(crate) fn correct(&mut self, of: &Limited, at: Millis, cost: u64) -> Touched {
        self.each(of, |limit| limit.correct(at, of.cost, cost))
    }

    /// A message runs no longer. Returns its limits.
    pub(crate) fn release(&mut self, of: &Limited) -> Touched {
        self.each(of, |limit| limit.release(of))
    }

    fn each(&mut self, of: &Limited, mut change: impl FnMut(&mut Limit)) -> Touched {
        let names = of.names.iter();
        let touched = names.filter_map(|name| {
            let ix = self.find(name)?;
            change(self.get_mut(ix)?);
            Some(ix)
        });
        touched.collect()
    }

    /// The first of its limits that blocks the delivery of a message of the group at this
    /// position.
    pub(crate) fn blocking<'a>(
        &self,
        of: &'a Limited,
        key: Position,
        now: Millis,
    ) -> Option<&'a [u8]> {
        let mut names = of.names.iter().map(|name| &**name);
        names.find(|name| !self.lets(name, of.cost, key, now))
    }

    fn lets(&self, name: &[u8], cost: u64, key: Position, now: Millis) -> bool {
        match self.find(name).and_then(|ix| self.get(ix)) {
            Some(limit) => limit.lets(cost, key, now),
            None => self.allows(name, cost),
        }
    }

    /// Whether a name without any usage allows this cost.
    pub(crate) fn allows(&self, name: &[u8], cost: u64) -> bool {
        cost <= self.most_of(name)
    }

    /// Whether a name without any usage has room for a message, after the messages that are
    /// chosen already.
    pub(crate) fn has_room_behind(&self, name: &[u8], cost: u64, taken: Taken) -> bool {
        let mut limit = Limit::new(name);
        limit.govern(self.rule_for(name).and_then(|of| of.own.clone()), None);
        limit.has_room_behind(cost, 0, taken)
    }

    /// The first of these limits that never allows the cost, and the most that it allows.
    pub fn never<'a>(&self, of: &'a Limited) -> Option<(&'a [u8], u64)> {
        let names = of.names.iter().map(|name| &**name);
        let mut most = names.map(|name| (name, self.most_of(name)));
        most.find(|(_, most)| of.cost > *most)
    }

    /// The largest cost that the limit with this name ever allows.
    pub fn most_of(&self, name: &[u8]) -> u64 {
        let rule = self.rule_for(name).and_then(|limit| limit.own.as_ref());
        rule.map_or(u64::MAX, |rule| rule.most())
    }

    /// The limit for which a group waits that would deliver this message next; `None` if
    /// none of them has a rule.
    ///
    /// A limit that can never let it go comes first, then one that is full, and of several
    /// that with the least to wait for.
    /// If all have room, it is the one that most is counted for, since that is the one
    /// which will be full first for the most groups.
    pub(crate) fn home_of(&mut self, of: &Limited, key: Position, now: Millis) -> Option<LimitIx> {
        let name = self.chosen(of, |name| self.lets(name, of.cost, key, now))?;
        Some(self.find_or_add(name))
    }

    /// The name of that limit, where `lets` says which of them would let the message begin.
    pub(crate) fn chosen<'a>(
        &self,
        of: &'a Limited,
        lets: impl Fn(&[u8]) -> bool,
    ) -> Option<&'a [u8]> {
        let names = of.names.iter().enumerate().filter_map(|(at, name)| {
            let limit = self.find(name).and_then(|ix| self.get(ix));
            let (has_rule, counted, is_own) = match limit {
                Some(limit) => (
                    limit.rule.is_some(),
                    limit.waiting() as u64 + limit.running,
                    limit.own.is_some(),
                ),
                None => (self.rule_for(name).is_some(), 0, false),
            };
            let is_never = !self.allows(name, of.cost);
            let rank = match lets(name) {
                true => (is_never, false, counted, is_own, at),
                false => (is_never, true, u64::MAX - counted, is_own, at),
            };
            has_rule.then_some((rank, &**name))
        });
        let (_, name) = names.max_by_key(|(rank, _)| *rank)?;
        Some(name)
    }

    /// The time of the next check of a limit.
    pub(crate) fn time_of(&self, ix: LimitIx) -> Option<Millis> {
        self.get(ix)?.time
    }

    /// Sets the time of the next check of a limit. Returns the time.
    pub(crate) fn set_time(&mut self, ix: LimitIx, time: Option<Millis>) -> Option<Millis> {
        let limit = self.slots.get_mut(ix.slot())?;
        if limit.time != time {
            if let Some(at) = std::mem::replace(&mut limit.time, time) {
                self.times.remove(&(at, ix.number()));
            }
            if let Some(at) = time {
                self.times.insert((at, ix.number()), ());
            }
        }
        time
    }

    /// The limit that is checked next, and the time of the check.
    pub(crate) fn next_time(&self) -> Option<(Millis, LimitIx)> {
        let ((at, number), ()) = self.times.first()?;
        Some((at, LimitIx::in_slot(number as usize)))
    }

    /// The limits that are to be checked by `now`.
    pub(crate) fn due(&self, now: Millis) -> impl Iterator<Item = &Limit> {
        let times = self.times.iter().map(|(time, ())| time);
        let due = times.take_while(move |(at, _)| *at <= now);
        due.filter_map(|(_, number)| self.get(LimitIx::in_slot(number as usize)))
    }

    /// Drops a limit if nothing needs it any longer. Returns whether it did.
    pub(crate) fn drop_idle(&mut self, ix: LimitIx, now: Millis) -> bool {
        if !self.get(ix).is_some_and(|limit| limit.is_idle(now)) {
            return false;
        }
        self.set_time(ix, None);
        let hash_of = hash_of_names(&self.hasher, &self.slots);
        self.by_name
            .remove(hash_of(&ix), |other| *other == ix, hash_of);
        self.slots.remove(ix.slot());
        true
    }

    /// Notes that no message runs and no group waits any longer, because all messages were
    /// removed. Past deliveries continue to count. O(limits).
    pub(crate) fn without_messages(&mut self) -> Vec<LimitIx> {
        let all: Vec<LimitIx> = self.starting_at(0).map(|(ix, _)| ix).collect();
        for ix in &all {
            if let Some(limit) = self.get_mut(*ix) {
                (limit.running, limit.running_cost) = (0, Sum::default());
                limit.line = OrderedSet::new();
                limit.too_large = OrderedSet::new();
                limit.open = None;
            }
        }
        all
    }

    /// Restores the deliveries within the windows of a limit. Returns whether it has so many.
    pub(crate) fn restore(&mut self, ix: LimitIx, windows: Vec<RateWindow>) -> bool {
        let Some(limit) = self.get_mut(ix) else {
            return false;
        };
        let fits = windows.len() == limit.windows.len();
        limit.windows = windows.into();
        fits
    }

    /// Bytes allocated, an estimate. O(limits).
    pub fn memory_bytes(&self) -> usize {
        let limits = self.starting_at(0).map(|(_, limit)| limit.memory_bytes());
        self.by_name.allocation_size()
            + self.slots.memory_bytes()
            + self.patterns.memory_bytes()
            + self.times.memory_bytes()
            + limits.sum::<usize>()
    }
}

/// The hash function for the entries of the table by name.
fn hash_of_names<'a>(
    hasher: &'a NameHasher,
    slots: &'a Slots<Limit, NEIGHBOURS>,
) -> impl Fn(&LimitIx) -> u64 + 'a {
    |ix| {
        let limit = slots.get(ix.slot());
        hash_name(hasher, limit.map_or(&[], |limit| &limit.name))
    }
}
