//! The limits with names as they would be after the messages that PEEK has taken so far.

use std::collections::HashMap;

use crate::groups::group::Group;
use crate::index::ready_line::Position;
use crate::message::Message;
use crate::named_limits::Taken;
use crate::queue::Queue;
use crate::{LimitIx, Millis, Seq};

/// The limits of a queue in a rehearsal of FETCH.
pub(super) struct RehearsedLimits<'a> {
    queue: &'a Queue,
    now: Millis,
    taken: HashMap<&'a [u8], Taken>,
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

    /// Takes a message. Returns whether its limits have room
    /// for it.
    pub fn take(&mut self, seq: Seq) -> bool {
        let (Some(limits), Some(limited)) = (
            self.queue.limits(),
            self.queue.store.get(seq).and_then(Message::limited),
        ) else {
            return true;
        };
        let (cost, now) = (limited.cost, self.now);
        let mut names = limited.names.iter();
        let has_room = names.all(|name| {
            let taken = self.taken.get(&**name).copied().unwrap_or_default();
            match limits.find(name).and_then(|ix| limits.get(ix)) {
                Some(limit) => limit.has_room_behind(cost, now, taken),
                None => limits.has_room_behind(name, cost, taken),
            }
        });
        if has_room {
            for name in &limited.names {
                let taken = self.taken.entry(name).or_default();
                taken.messages += 1;
                taken.cost = taken.cost.saturating_add(cost);
            }
        }
        has_room
    }
}
