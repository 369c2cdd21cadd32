//! The breakers of all groups, and when the passing of time changes them.

use super::breaker::Circuit;
use super::group::Group;
use super::Groups;
use crate::collections::ordered::OrderedSet;
use crate::settings::Breaker;
use crate::{GroupIx, Millis, Seq};

/// When the breaker of a group changes (Unix ms), the message whose failure came last
/// in it, and the group. The message decides the order within one millisecond.
pub type Change = (Millis, Seq, GroupIx);

/// When breakers of groups change by themselves. Both sets are empty where no breaker
/// is used.
#[derive(Debug, Clone, Default)]
pub(super) struct BreakerTimes {
    /// The times at which open breakers become half-open.
    ends: OrderedSet<Change>,
    /// The times at which the failures of closed breakers no longer count.
    lapses: OrderedSet<Change>,
}

impl BreakerTimes {
    fn remove(&mut self, change: &Change) {
        let known = self.ends.remove(change).is_some() || self.lapses.remove(change).is_some();
        debug_assert!(known, "the time of a breaker's change is not known");
    }

    fn insert(&mut self, change: Change, circuit: &Circuit) {
        match circuit.is_closed() {
            true => self.lapses.insert(change, ()),
            false => self.ends.insert(change, ()),
        };
    }

    /// Drops about `most` entries. Returns how many.
    pub fn drain_some(&mut self, most: usize) -> usize {
        self.ends.drain_some(most) + self.lapses.drain_some(most)
    }

    /// Bytes allocated.
    pub fn memory_bytes(&self) -> usize {
        self.ends.memory_bytes() + self.lapses.memory_bytes()
    }
}

fn change_of(ix: GroupIx, circuit: &Circuit, rule: &Breaker) -> Option<Change> {
    Some((circuit.next_change(rule)?, circuit.cause(), ix))
}

impl Groups {
    /// Sets the breaker of a group; one that is closed and remembers nothing is
    /// dropped. Call [`Groups::settle`] afterwards. O(log n).
    pub fn set_breaker(&mut self, ix: GroupIx, circuit: Circuit, rule: &Breaker) {
        self.take_breaker(ix, rule);
        if circuit.is_idle() {
            return;
        }
        if let Some(change) = change_of(ix, &circuit, rule) {
            self.breaker_times.insert(change, &circuit);
        }
        if let Some(group) = self.get_mut(ix) {
            group.ext_mut().breaker = Some(Box::new(circuit));
        }
    }

    /// Takes the breaker of a group. A closed one that remembers nothing is left. Call
    /// [`Groups::settle`] afterwards. O(log n).
    pub fn take_breaker(&mut self, ix: GroupIx, rule: &Breaker) -> Option<Circuit> {
        let ext = self.get_mut(ix).and_then(Group::ext_if_any)?;
        let circuit = ext.breaker.take()?;
        if let Some(change) = change_of(ix, &circuit, rule) {
            self.breaker_times.remove(&change);
        }
        Some(*circuit)
    }

    /// The next change of a breaker that comes with time. O(1).
    pub fn next_breaker_change(&self) -> Option<Change> {
        let ends = self.breaker_times.ends.first();
        let lapses = self.breaker_times.lapses.first();
        ends.into_iter()
            .chain(lapses)
            .map(|(change, ())| change)
            .min()
    }

    /// The number of groups whose breaker is open at `now`. O(those whose time has
    /// ended and that are not half-open yet).
    pub fn breakers_open(&self, now: Millis) -> usize {
        let ends = &self.breaker_times.ends;
        let over = ends.iter().take_while(|((until, _, _), ())| *until <= now);
        ends.len().saturating_sub(over.count())
    }

    /// The groups with a breaker that is not closed, or that remembers failures. O(n)
    /// in these and the groups with settings or a pause.
    pub fn with_breaker(&self) -> Vec<GroupIx> {
        let has = |ix: &GroupIx| self.get(*ix).is_some_and(|g| g.ext().breaker.is_some());
        self.configured.iter().copied().filter(has).collect()
    }

    /// All changes that come with time, without the groups.
    #[cfg(any(test, feature = "validate"))]
    pub fn breaker_change_times(&self) -> Vec<(Millis, Seq)> {
        let BreakerTimes { ends, lapses } = &self.breaker_times;
        let all = ends.iter().chain(lapses.iter());
        all.map(|((at, cause, _), ())| (at, cause)).collect()
    }

    /// Counts the time of remembered failures by another rule. O(n log n) in the groups
    /// that remember any.
    pub fn alter_breakers(&mut self, rule: &Breaker) {
        let lapses = std::mem::take(&mut self.breaker_times.lapses);
        for ((_, _, ix), ()) in &lapses {
            let circuit = self.get(ix).and_then(|g| g.ext().breaker.as_deref());
            if let Some(change) = circuit.and_then(|c| change_of(ix, c, rule)) {
                self.breaker_times.lapses.insert(change, ());
            }
        }
    }
}
