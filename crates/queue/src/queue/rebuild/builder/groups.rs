//! The groups of a queue that is built from its parts.

use super::{at_mut, Builder};
use crate::collections::rare::Rare;
use crate::groups::backlog::{Backlog, Member};
use crate::groups::breaker::{Circuit, Lets};
use crate::index::ready_line::{Kind, Position, ReadyLine};
use crate::limits::{ensure, name, Invalid};
use crate::message::state::StoredState;
use crate::message::Message;
use crate::queue::rebuild::group_part::GroupPart;
use crate::queue::rebuild::{check, Checked};
use crate::GroupIx;

/// A group with the counts from its messages.
#[derive(Debug)]
pub(super) struct NewGroup {
    pub(super) ix: GroupIx,
    pub(super) part: GroupPart,
    pub(super) pending: Vec<(StoredState, Member)>,
}

impl Builder {
    /// Adds a group. Messages refer to it by the number of groups added before it.
    ///
    /// Errors: the part is out of range, or a group has this name already.
    pub fn group(&mut self, group: &[u8], part: GroupPart) -> Checked {
        check::group(&part, self.queue.state.next_seq, self.queue.state.last)?;
        let ix = match part.is_hidden {
            true => {
                let is_plain = part.settings.is_none() && part.paused_until.is_none();
                ensure(
                    is_plain && part.held_by.is_empty(),
                    "messages without a group have settings, a pause or a hold",
                )?;
                self.queue.state.groups.find_or_add_hidden(group)
            }
            false => {
                name(group)?;
                self.queue.state.groups.find_or_add(group)
            }
        };
        // A new group gets the next slot, so its slot number tells whether the name
        // is new.
        let is_new = ix.number() == self.groups.len() as u64;
        ensure(is_new, "two groups have the same name")?;
        self.groups.push(NewGroup {
            ix,
            part,
            pending: Vec::new(),
        });
        Ok(())
    }

    /// Adds the breaker of a group, or of the ungrouped messages (`None`). It comes
    /// after its group.
    ///
    /// Errors: the breaker is out of range, or there is one already.
    pub fn breaker(&mut self, group: Option<u64>, circuit: Circuit) -> Checked {
        check::breaker(&circuit, &self.queue)?;
        let is_new = match group {
            None => {
                let breaker = &mut self.queue.state.seldom.plain_breaker;
                breaker.replace(Box::new(circuit)).is_none()
            }
            Some(number) => {
                let group = at_mut(&mut self.groups, number)
                    .ok_or(Invalid("a breaker names a group that is missing"))?;
                group.part.breaker.replace(circuit).is_none()
            }
        };
        ensure(is_new, "a group has two breakers")
    }

    /// Gives the groups their messages, settings and positions, and builds the
    /// ready line.
    pub(super) fn enter_groups(&mut self) -> Checked {
        let queue = &mut self.queue;
        let mut line: Vec<(Position, Kind)> = Vec::new();
        let mut homes = Vec::new();
        check::probe(
            queue,
            queue.state.seldom.plain_breaker.as_deref(),
            GroupIx::NONE,
        )?;
        let rule = queue.state.settings.breaker;
        for new in self.groups.drain(..) {
            let pending = new.pending;
            queue.state.groups.with(new.ix, |group| {
                group.backlog = Backlog::from_members(pending)
            });
            let Some(group) = queue.state.groups.get_mut(new.ix) else {
                continue;
            };
            let ext = group.ext_mut();
            ext.settings = new.part.settings;
            ext.paused_until = new.part.paused_until;
            for (seq, id) in new.part.held_by {
                let message = queue.state.store.get(seq);
                let is_there = |m: &Message| m.stored.is_dead() && m.group == new.ix;
                match message.is_some_and(is_there) {
                    true => ext.holds.add(seq),
                    false => ext.holds.add_pruned(seq, &id),
                }
            }
            ext.turn = new.part.turn;
            if let (Some(circuit), Some(rule)) = (new.part.breaker, &rule) {
                check::probe(queue, Some(&circuit), new.ix)?;
                queue.state.groups.set_breaker(new.ix, circuit, rule);
            }
            let last = queue.state.last;
            let Some(group) = queue.state.groups.get_mut(new.ix) else {
                continue;
            };
            if let Some(position) = new.part.line {
                let key = position.key(new.ix);
                group.set_positions(Some(key), &[]);
                group.counted = true;
                queue.indexes.grouped_ready += group.backlog.all().count_at(StoredState::Due);
                match new.part.home {
                    Some((limit, cost)) => homes.push((key, limit, cost)),
                    None => line.push((
                        key,
                        match group.lets(last) {
                            _ if group.is_hidden() => Kind::Hidden,
                            Lets::Probe => Kind::HalfOpen,
                            Lets::Any | Lets::None => Kind::Steady,
                        },
                    )),
                }
            }
            let Some(group) = queue.state.groups.get(new.ix) else {
                continue;
            };
            let blocked =
                queue.waits_behind_failed(group) && queue.waits_for_retry(group, queue.state.last);
            let can_give = !group.backlog.all().is_empty()
                && !blocked
                && !queue.is_held_by_dead(group)
                && !queue.is_busy(group)
                && !group.is_paused(queue.state.last)
                && group.lets(queue.state.last) != Lets::None;
            ensure(
                can_give || !group.is_in_line(),
                "a group is in the ready line but can give nothing",
            )?;
            // A group without a message to deliver and without a pause is not checked
            // again, even if the snapshot has a time for it.
            let wake = new
                .part
                .wake
                .filter(|_| !group.backlog.all().is_empty() || group.ext().paused_until.is_some());
            queue.state.groups.wake_at(new.ix, wake);
            queue.expect_next(new.ix);
            queue.state.groups.settle(new.ix);
        }
        let homed = homes.iter().map(|(key, ..)| key);
        let keys = line.iter().map(|(key, _)| key);
        let keys = keys.chain(&queue.state.plain_position);
        let keys = keys.chain(homed);
        queue.state.ticket = keys.map(|key| key.join.ticket).max().unwrap_or(0);
        queue.indexes.ready_line = Rare::unless(line.is_empty(), ReadyLine::from_positions(line));
        self.enter_limits(homes)
    }
}
