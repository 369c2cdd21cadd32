//! Redriving: dead messages pending again.
//!
//! Very many are moved in slices. Until then they stand in the order in which
//! they are to be given, and a FETCH moves those first that it comes to: what
//! it gives does not depend on how far that has come.

use crate::index::order_key::OrderKey;
use crate::index::ready_line::{Join, Position};
use crate::index::records::DeadOrder;
use crate::message::state::StoredState;
use crate::message::Message;
use crate::op::{Done, Redrive};
use crate::queue::discard::Discarded;
use crate::queue::finish::record;
use crate::queue::remains::AT_ONCE;
use crate::queue::Queue;
use crate::{GroupIx, Millis, Seq, NEVER};

/// Dead messages that were redriven together and still are to be moved.
#[derive(Debug, Clone, Default)]
pub(in crate::queue) struct Redriving {
    /// Which ones.
    pub left: DeadOrder,
    /// When, and by which command.
    pub join: Join,
}

impl Redriving {
    /// Whether a message is one of them.
    pub fn has(&self, seq: Seq, message: &Message) -> bool {
        message.stored == StoredState::Dead && {
            let record = record(seq, message);
            self.left.of(&record).contains(&(record.priority, seq))
        }
    }

    /// Takes a message out; whether it was one of them.
    fn remove(&mut self, seq: Seq, message: &Message) -> bool {
        message.stored == StoredState::Dead && {
            let record = record(seq, message);
            let order = self.left.of_mut(&record);
            order.remove(&(record.priority, seq)).is_some()
        }
    }
}

impl Queue {
    /// Makes dead messages pending again; how many. All of a large number are
    /// moved in slices afterwards, and each of them at once when it is asked
    /// for.
    pub(in crate::queue) fn redrive(&mut self, which: &Redrive, now: Millis) -> Done {
        let count = match which {
            Redrive::Ids(ids) => {
                let mut count = 0;
                for id in ids {
                    let found = self.find_current(id, now);
                    let dead = found.filter(|seq| self.is_at(*seq, StoredState::Dead));
                    if let Some(seq) = dead {
                        self.redrive_one(seq, self.join(now));
                        count += 1;
                    }
                }
                count
            }
            Redrive::Oldest(most) => self.redrive_oldest(*most, now),
        };
        if count > 0 {
            self.totals.redriven += count;
            self.changed();
        }
        Done::Count(count)
    }

    pub(super) fn is_at(&self, seq: Seq, stored: StoredState) -> bool {
        let message = self.store.get(seq);
        message.is_some_and(|message| message.stored == stored)
    }

    fn redrive_oldest(&mut self, most: u64, now: Millis) -> u64 {
        if self.ghosts_at(StoredState::Dead) > 0 {
            // What is purged must not come back.
            self.drop_cut_records();
        }
        let dead = self.records.dead.len() as u64;
        let count = most.min(dead);
        if count > AT_ONCE as u64 && count == dead && self.redriving.left.is_empty() {
            let by_death = std::mem::take(&mut self.records.dead);
            self.discarded.push(Discarded::Index(by_death));
            self.redriving = Redriving {
                left: std::mem::take(&mut self.records.dead_order),
                join: self.join(now),
            };
            self.wake_by(0);
            self.finish_manually();
        } else {
            for _ in 0..count {
                if let Some((_, seq)) = self.records.oldest_dead() {
                    self.redrive_one(seq, self.join(now));
                }
            }
        }
        count
    }

    /// Moves one of those that were redriven.
    pub(in crate::queue) fn redrive_next(&mut self) {
        let left = &mut self.redriving.left;
        let next = left.plain.pop_first().or_else(|| left.grouped.pop_first());
        if let Some(((_, seq), ())) = next {
            self.redrive_one(seq, self.redriving.join);
        }
    }

    /// Moves all those of groups that were redriven.
    pub(in crate::queue) fn redrive_grouped(&mut self) {
        while let Some(((_, seq), ())) = self.redriving.left.grouped.pop_first() {
            self.redrive_one(seq, self.redriving.join);
        }
    }

    /// Moves a message, if it was redriven and still is to be moved.
    pub(in crate::queue) fn redrive_if_due(&mut self, seq: Seq) {
        let message = self.store.get(seq);
        if message.is_some_and(|message| self.redriving.has(seq, message)) {
            self.redrive_one(seq, self.redriving.join);
        }
    }

    /// Moves those that a FETCH would give before anything else: the first of
    /// the ungrouped ones, and of the groups the one that would be first in
    /// line. `most` bounds those that are moved in vain, because their groups
    /// cannot give.
    pub(in crate::queue) fn redrive_first(&mut self, now: Millis, most: &mut u64) {
        if self.redriving.left.is_empty() {
            return;
        }
        let Join { time, .. } = self.redriving.join;
        if let Some(((priority, seq), ())) = self.redriving.left.plain.first() {
            let head = self.waiting.plain.head(now);
            if head.is_none_or(|head| (priority, time, seq) < head) {
                self.redrive_one(seq, self.redriving.join);
            }
        }
        while let Some(((priority, seq), ())) = self.redriving.left.grouped.first() {
            let stored = Position {
                priority,
                join: self.redriving.join,
                seq,
                group: GroupIx::NONE,
            };
            let stands = self.ready_line.first(false);
            let first = stands.into_iter().chain(self.expected.first(now)).min();
            if *most == 0 || first.is_some_and(|first| first < stored) {
                return;
            }
            *most -= 1;
            self.redrive_one(seq, self.redriving.join);
        }
    }

    /// Moves that one of a group which goes before all that it has pending.
    pub(in crate::queue) fn redrive_first_of(&mut self, ix: GroupIx, now: Millis) {
        let Some(first) = self.first_redriven_of(ix) else {
            return;
        };
        let head = self
            .groups
            .get(ix)
            .and_then(|group| self.next_in_group(group, now));
        if head.is_none_or(|head| first < head) {
            self.redrive_one(first.seq(), self.redriving.join);
        }
    }

    /// Moves all of a group that were redriven.
    pub(in crate::queue) fn redrive_all_of(&mut self, ix: GroupIx) {
        while let Some(first) = self.first_redriven_of(ix) {
            self.redrive_one(first.seq(), self.redriving.join);
        }
    }

    /// The first of a group that was redriven and still is to be moved.
    fn first_redriven_of(&self, ix: GroupIx) -> Option<OrderKey> {
        if self.redriving.left.grouped.is_empty() {
            return None;
        }
        let dead = self.groups.get(ix)?.records_at(StoredState::Dead)?;
        // Few have died since.
        dead.iter().map(|(key, ())| key).find(|key| {
            let message = self.store.get(key.seq());
            message.is_some_and(|message| self.redriving.has(key.seq(), message))
        })
    }

    /// Moves a dead message as of the REDRIVE that it owes it to.
    pub(super) fn redrive_one(&mut self, seq: Seq, redriven: Join) {
        if let Some(message) = self.store.get(seq) {
            self.redriving.remove(seq, message);
        }
        self.leave_record(seq);
        let due = redriven.time;
        let changed = self.store.with(seq, |message| {
            let ext = message.extension_mut();
            ext.attempt = 0;
            ext.failures = 0;
            ext.timeouts = 0;
            ext.due_at = due;
            ext.ttl_base = due;
            ext.ended_at = NEVER;
            if let Some(texts) = ext.texts.as_mut() {
                texts.reason = None;
            }
            message.due = due;
            (message.group, message.payload_len())
        });
        if let Some((group, size)) = changed {
            // Also where a command that does nothing else comes across it.
            self.effects.changed = true;
            self.bytes += size;
            self.unhold(seq, group);
            self.enter_pending(seq, self.last);
            self.refresh(group, self.last, redriven);
        }
    }
}
