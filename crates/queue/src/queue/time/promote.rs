//! Promotion: moves messages that have become due from delayed or retry to due.

use super::Progress;
use crate::groups::backlog::Member;
use crate::groups::group::Group;
use crate::index::ready_line::Join;
use crate::message::state::StoredState;
use crate::op::Happened;
use crate::queue::moves::{member, pending_key};
use crate::queue::Queue;
use crate::transition::Kind;
use crate::{GroupIx, Millis, Seq};

impl Queue {
    /// Promotes messages that are due at `at` until the step budget is used up.
    ///
    /// A run may be cut short here: nothing can be added meanwhile that would have
    /// to be processed earlier within the same millisecond.
    pub(in crate::queue) fn promote_all(&mut self, at: Millis, most: u64, progress: &mut Progress) {
        // The caller has already counted the first promotion as a step.
        let mut paid = 1;
        loop {
            let left = most.saturating_sub(progress.steps).saturating_add(paid);
            let promoted = match self.promote_run(at, left) {
                0 => self.promote_next(at, left),
                promoted => promoted,
            };
            if promoted == 0 {
                return;
            }
            progress.steps += promoted - paid;
            progress.ticked.due += promoted;
            paid = 0;
        }
    }

    /// Promotes up to `most` of the next ungrouped messages. Returns how many. O(1)
    /// each where they go behind all others.
    ///
    /// All messages are read first, before an index is touched. They are scattered
    /// in memory, and waiting for each read by itself is the main cost of a
    /// promotion; reads that do not depend on each other overlap.
    fn promote_run(&mut self, at: Millis, most: u64) -> u64 {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let Some(run) = self.indexes.waiting.next_run(at, most) else {
            return 0;
        };
        for (_, seq) in &run.keys {
            if let Some(message) = self.state.store.get_mut(*seq) {
                message.stored = StoredState::Due;
            }
        }
        self.indexes.waiting.plain.promote_run(&run);
        if self.has_events() {
            for (_, seq) in &run.keys {
                self.note_until(*seq, Kind::Ready, at, at);
            }
        }
        self.notes.effects.happened.add(Happened::READY);
        self.refresh(GroupIx::NONE, at, Join::by_time(at));
        run.keys.len() as u64
    }

    /// Promotes the next message, if it is due at `at` and `most` is not 0. Returns
    /// how many were promoted, 0 or 1.
    fn promote_next(&mut self, at: Millis, most: u64) -> u64 {
        let next = self.indexes.waiting.next_promotion();
        let Some((_, seq)) = next.filter(|(due, _)| *due <= at && most > 0) else {
            return 0;
        };
        let group = self.state.store.get(seq).map_or(GroupIx::NONE, |m| m.group);
        self.promote_one(seq);
        if !group.is_some() {
            self.refresh(group, at, Join::by_time(at));
            return 1;
        }
        // A group joins the line by a separate step, unless it was not known when the
        // last of very many failed messages would be due.
        let known = self.state.groups.get(group).is_some_and(|group| {
            group.is_expected()
                || group.is_in_line()
                || group.backlog.all().count_at(StoredState::Retry) > 0
        });
        // The message may come first in its group, which then waits for other limits.
        let waits_for_limit = self.state.groups.get(group).and_then(Group::home).is_some();
        if !known || waits_for_limit {
            self.refresh(group, self.state.last, Join::by_time(at));
        }
        1
    }

    /// Promotes one message.
    fn promote_one(&mut self, seq: Seq) {
        let Some(message) = self.state.store.get_mut(seq) else {
            return;
        };
        let from = std::mem::replace(&mut message.stored, StoredState::Due);
        let (group, pending_key) = (message.group, pending_key(seq, message));
        let member = group.is_some().then(|| member(seq, message));
        self.indexes.waiting.promote(from, pending_key);
        self.note(seq, Kind::Ready);
        let is_ready = member.is_none_or(|member| self.promote_member(group, from, member));
        if is_ready {
            self.notes.effects.happened.add(Happened::READY);
        }
    }

    /// Promotes a message within its group. Returns whether the message is ready
    /// then.
    fn promote_member(&mut self, ix: GroupIx, from: StoredState, member: Member) -> bool {
        let counted = self.state.groups.with(ix, |group| {
            group.backlog.promote(from, member);
            group.counted
        });
        let is_ready = counted.unwrap_or(true);
        if is_ready {
            self.indexes.grouped_ready += 1;
        }
        is_ready
    }
}
