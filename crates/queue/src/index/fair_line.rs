//! The ready line in the order of its groups' usage (FAIR TIME, FAIR COST).
//!
//! Each group has a tag: how much it has used, divided by its weight. The group with the
//! lowest tag gives next. A group that comes to the line gets at least the tag of the one
//! that gave last, so that nobody saves up for later.

// Clients choose what is summed here: by the types of `sums`, or saturating.
#![warn(clippy::arithmetic_side_effects)]

use super::ready_line::{Kind, Position};
use crate::collections::ordered::{Key, OrderedSet};
use crate::MAX_EXACT;

/// A position in the order: priority, tag, and the position for those with equal tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FairKey {
    priority: i8,
    /// The usage of the group.
    pub tag: u64,
    /// Its position in the ready line.
    pub position: Position,
}

impl Key for FairKey {}

impl FairKey {
    /// The position of a group or of the ungrouped messages.
    pub fn new(tag: u64, position: Position) -> FairKey {
        FairKey {
            priority: position.priority,
            tag,
            position,
        }
    }
}

/// The usage of a group, or of the ungrouped messages. Tags count thousandths of a
/// millisecond or of a cost, so that weights divide them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// The usage so far, with an estimate for running messages.
    pub tag: u64,
    /// The mean usage of a message lately, in ms; 0 if that is not known.
    pub mean: u64,
    /// The part of the tag that is estimated, for the messages that run.
    pub estimated: u64,
}

/// The greatest tag. A dump or a long history may lead to larger ones, which count as this.
pub const MAX_TAG: u64 = 1 << 62;

/// A sum of tags.
pub fn plus(tag: u64, more: u64) -> u64 {
    tag.saturating_add(more).min(MAX_TAG)
}

impl Usage {
    /// The usage in a snapshot, which may say anything.
    pub fn checked(self) -> Usage {
        Usage {
            tag: self.tag.min(MAX_TAG),
            mean: self.mean.min(MAX_EXACT),
            estimated: self.estimated.min(MAX_TAG),
        }
    }

    /// The usage when all tags are counted from `origin` on.
    pub fn since(self, origin: u64) -> Usage {
        Usage {
            tag: self.tag.saturating_sub(origin),
            ..self
        }
    }

    /// The usage without that of running messages.
    pub fn without_running(self) -> Usage {
        Usage {
            tag: self.tag.saturating_sub(self.estimated),
            estimated: 0,
            ..self
        }
    }
}

/// The order of all groups that can deliver, and the state that is common to all.
#[derive(Debug, Clone, Default)]
pub struct FairLine {
    sets: [OrderedSet<FairKey>; 3],
    /// The tag of the group that delivered last.
    pub clock: u64,
    /// The mean usage of a message of any group lately, in ms.
    pub mean: u64,
    /// The usage of the ungrouped messages.
    pub plain: Usage,
}

impl FairLine {
    /// Adds a group. O(log n).
    pub fn insert(&mut self, key: FairKey, kind: Kind) {
        if let Some(set) = self.sets.get_mut(kind as usize) {
            set.insert(key, ());
        }
    }

    /// Removes a group, which must be there. O(log n).
    pub fn remove(&mut self, key: &FairKey) {
        let mut sets = self.sets.iter_mut();
        let known = sets.any(|set| set.remove(key).is_some());
        debug_assert!(known, "the order of usage does not have a group");
    }

    /// The first group, as [`super::ready_line::ReadyLine::first`].
    pub fn first(&self, no_ack: bool, hidden: bool) -> Option<FairKey> {
        let [steady, half_open, of_hidden] = &self.sets;
        let all = [(steady, true), (half_open, !no_ack), (of_hidden, hidden)];
        let allowed = all.into_iter().filter(|(_, allowed)| *allowed);
        let firsts = allowed.filter_map(|(set, _)| set.first());
        firsts.map(|(key, ())| key).min()
    }

    /// Notes that the breaker of a group is closed now.
    pub fn close_breaker(&mut self, key: FairKey) {
        let [steady, half_open, _] = &mut self.sets;
        if half_open.remove(&key).is_some() {
            steady.insert(key, ());
        }
    }

    /// Empties the line: no group is in it any longer.
    pub fn clear(&mut self) {
        self.sets = Default::default();
    }

    /// The state of the line, without the numbers of the groups. For tests.
    #[cfg(any(test, feature = "validate"))]
    pub fn told(&self) -> String {
        let sets = self.sets.iter().map(|set| {
            let keys = set.iter().map(|(key, ())| (key.tag, key.position.seq));
            keys.collect::<Vec<_>>()
        });
        let sets: Vec<_> = sets.collect();
        format!("{:?}", (sets, self.clock, self.mean, self.plain))
    }

    /// Bytes allocated.
    pub fn memory_bytes(&self) -> usize {
        self.sets.iter().map(OrderedSet::memory_bytes).sum()
    }
}
