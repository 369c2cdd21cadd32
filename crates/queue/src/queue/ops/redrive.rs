//! Redriving: dead messages pending again.

use crate::index::ready_line::Join;
use crate::message::state::StoredState;
use crate::op::{Done, Redrive};
use crate::queue::stuck::Last;
use crate::queue::Queue;
use crate::seeded::{seeded, Bug};
use crate::transition::Kind;
use crate::{Millis, Seq, NEVER};

impl Queue {
    /// Makes dead messages pending again. Returns how many. O(log n) for each.
    pub(in crate::queue) fn redrive(&mut self, which: &Redrive, now: Millis) -> Done {
        let join = self.join(now);
        let count = match which {
            Redrive::Ids(ids) => {
                let mut count = 0;
                for id in ids {
                    let found = self.find_current(id, now);
                    let dead = found.filter(|seq| self.is_at(*seq, StoredState::Dead));
                    if let Some(seq) = dead {
                        self.redrive_one(seq, join);
                        count += 1;
                    }
                }
                count
            }
            Redrive::Oldest(most) => {
                let (mut count, mut last) = (0, Last::none());
                while count < *most {
                    let Some((_, seq)) = self.state.records.oldest_dead() else {
                        break;
                    };
                    if last.is_again(seq) {
                        self.note_stuck("a dead message that is to be redriven");
                        break;
                    }
                    self.redrive_one(seq, join);
                    count += 1;
                }
                count
            }
        };
        if count > 0 {
            self.state.totals.redriven += count;
            self.changed();
        }
        Done::Count(count)
    }

    pub(in crate::queue) fn is_at(&self, seq: Seq, stored: StoredState) -> bool {
        let message = self.state.store.get(seq);
        message.is_some_and(|message| message.stored == stored)
    }

    /// Makes a dead message pending again, as part of a redrive that joins the ready line with
    /// `join`.
    pub(in crate::queue) fn redrive_one(&mut self, seq: Seq, redriven: Join) {
        self.leave_record(seq);
        let due = redriven.time;
        let changed = self.state.store.with(seq, |message| {
            let ext = message.extension_mut();
            ext.attempt = 0;
            ext.failures = 0;
            ext.timeouts = 0;
            ext.due_at = due;
            if !seeded(Bug::RedriveKeepsTtl) {
                ext.ttl_base = due;
            }
            ext.ended_at = NEVER;
            if let Some(choices) = ext.choices.as_mut() {
                choices.change_rare(|rare| rare.expire_at = None);
            }
            if let Some(texts) = ext.texts.as_mut() {
                texts.reason = None;
            }
            message.due = due;
            message.set_due_at_point(false);
            (message.group, message.payload_len())
        });
        if let Some((group, size)) = changed {
            if self.state.seldom.has_batches() && !seeded(Bug::RedriveLeavesBatch) {
                self.member_redriven(seq);
            }
            if self.state.seldom.has_siblings() && !seeded(Bug::RedriveUntoldToParent) {
                self.child_redriven(seq);
            }
            if !seeded(Bug::RedriveForgetsBytes) {
                self.indexes.bytes += size;
            }
            if !seeded(Bug::RedriveKeepsHold) {
                self.unhold(seq, group);
            }
            self.note(seq, Kind::Redriven);
            self.enter_pending(seq, self.state.last);
            self.refresh(group, self.state.last, redriven);
        }
    }
}
