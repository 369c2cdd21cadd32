//! The limits with names as they would be after the messages that a FETCH has taken or passed over so
//! far.

use std::collections::{BTreeSet, HashMap};

use crate::groups::group::Group;
use crate::index::ready_line::Position;
use crate::message::limited::Limited;
use crate::message::Message;
use crate::named_limits::{Limit, Taken};
use crate::queue::ops::round::MOST_PASSED;
use crate::queue::Queue;
use crate::{LimitIx, Millis, Seq};

/// The limits of a queue in a rehearsal of FETCH.
pub(super) struct RehearsedLimits<'a> {
    queue: &'a Queue,
    now: Millis,
    taken: HashMap<&'a [u8], Taken>,
    /// For each limit, the first of the groups that came to wait for it on the way.
    waits: HashMap<&'a [u8], Position>,
    /// For each limit, the last of its waiting groups that was in the ready line.
    shown: HashMap<LimitIx, Position>,
}

impl<'a> RehearsedLimits<'a> {
    /// Starts with nothing taken.
    pub fn new(queue: &'a Queue, now: Millis) -> RehearsedLimits<'a> {
        RehearsedLimits {
            queue,
            now,
            taken: HashMap::new(),
            waits: HashMap::new(),
            shown: HashMap::new(),
        }
    }

    /// The groups that join the ready line because limits have room now.
    pub fn opening(&self) -> Vec<Position> {
        let due = self.queue.limits().into_iter();
        let due = due.flat_map(|limits| limits.due(self.now));
        let closed = due.filter(|limit| limit.open.is_none());
        let first = closed.filter_map(|limit| limit.line.first().map(|(key, ())| key));
        first.collect()
    }

    /// The group that joins the ready line when this one has delivered or has to wait for
    /// another limit.
    pub fn next_in_line(&mut self, key: Position, group: &Group) -> Option<Position> {
        let home = group.home()?.limit;
        let shown = self.shown.get(&home);
        if shown.is_some_and(|shown| *shown >= key) {
            return None;
        }
        let limit = self.queue.limits()?.get(home)?;
        let behind = limit.line.range_from(std::ops::Bound::Excluded(key));
        self.shown.insert(home, key);
        behind.map(|(next, ())| next).next()
    }

    /// Takes the next message of the group at this position. Returns whether its limits let it begin.
    /// If they do not, the group waits for one of them.
    pub fn take(&mut self, seq: Seq, key: Position) -> bool {
        let Some(limited) = self.limited(seq) else {
            return true;
        };
        if !self.passes(limited, key) {
            return false;
        }
        for name in &limited.names {
            let taken = self.taken.entry(name).or_default();
            taken.messages += 1;
            taken.cost = taken.cost.saturating_add(limited.cost);
        }
        true
    }

    fn limited(&self, seq: Seq) -> Option<&'a Limited> {
        self.queue.state.store.get(seq).and_then(Message::limited)
    }

    /// Whether the limits let a message begin. If they do not, its group waits for one of them.
    fn passes(&mut self, limited: &'a Limited, key: Position) -> bool {
        if self.blocking(limited, key).is_none() {
            return true;
        }
        let limits = self.queue.limits();
        let chosen = limits.and_then(|limits| {
            let name = limits.chosen(limited, |name| self.lets(name, limited.cost, key))?;
            limits.allows(name, limited.cost).then_some(name)
        });
        if let Some(name) = chosen {
            let first = self.waits.entry(name).or_insert(key);
            *first = (*first).min(key);
        }
        false
    }

    /// The first limit that blocks a message.
    fn blocking(&self, limited: &'a Limited, key: Position) -> Option<&'a [u8]> {
        let mut names = limited.names.iter().map(|name| &**name);
        names.find(|name| !self.lets(name, limited.cost, key))
    }

    fn lets(&self, name: &[u8], cost: u64, key: Position) -> bool {
        let Some(limits) = self.queue.limits() else {
            return true;
        };
        let taken = self.taken.get(name).copied().unwrap_or_default();
        let limit = limits.find(name).and_then(|ix| limits.get(ix));
        let has_room = match limit {
            Some(limit) => limit.has_room_behind(cost, self.now, taken),
            None => limits.has_room_behind(name, cost, taken),
        };
        let waits = self.waits.get(name).is_some_and(|first| *first < key);
        has_room && !waits && !limit.is_some_and(|limit| self.is_behind(limit, key))
    }

    /// Whether a group stands before this position that waits for room in a limit.
    fn is_behind(&self, limit: &Limit, key: Position) -> bool {
        let first = limit.line.first().map(|(first, ())| first);
        let first = first.filter(|first| *first < key && limit.open.is_none());
        first.is_some_and(|first| {
            let home = self
                .queue
                .state
                .groups
                .get(first.group)
                .and_then(Group::home);
            !limit.has_room(home.map_or(1, |home| home.cost), self.now)
        })
    }
}

impl Queue {
    /// The limit for which the next message of a group will wait, though it has room now: a group
    /// that stands before it in line is passed over and waits for the same limit. Looks at the first
    /// groups of the line only.
    pub(super) fn limit_of_those_before<'a>(
        &'a self,
        limited: &'a Limited,
        key: Position,
        now: Millis,
    ) -> Option<&'a [u8]> {
        let mut limits = RehearsedLimits::new(self, now);
        let mut joined: BTreeSet<Position> = limits.opening().into_iter().collect();
        let mut line = self.line_at(now).peekable();
        for _ in 0..MOST_PASSED {
            let before = match (line.peek(), joined.first()) {
                (Some(stands), Some(joins)) if joins < stands => joined.pop_first(),
                (Some(_), _) => line.next(),
                (None, _) => joined.pop_first(),
            };
            let Some(before) = before.filter(|before| *before < key) else {
                break;
            };
            let Some(group) = self.state.groups.get(before.group) else {
                continue;
            };
            let head = self.group_head(group, now);
            let Some(head) = head.and_then(|head| limits.limited(head.seq())) else {
                continue;
            };
            if !limits.passes(head, before) {
                joined.extend(limits.next_in_line(before, group));
            }
        }
        limits.blocking(limited, key)
    }
}
