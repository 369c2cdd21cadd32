//! Promoting: a waiting message's time has come.

use super::place::{member, waiter};
use super::time::Progress;
use super::Queue;
use crate::backlog::Member;
use crate::group::GroupIx;
use crate::line::Join;
use crate::op::Happened;
use crate::state::Place;
use crate::{Millis, Seq};

impl Queue {
    /// Promotes what is due at `at`, as far as the steps go: nothing that
    /// comes before it within the millisecond can be added meanwhile.
    pub(super) fn promote_all(&mut self, at: Millis, most: u64, progress: &mut Progress) {
        // The first of them is the step that was counted already.
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

    /// Promotes the ungrouped messages that are next, `most` of them at most; how
    /// many. O(1) each where they stand behind all others.
    ///
    /// All are read before an index is touched, one as soon as the other: they lie
    /// anywhere in memory, and to wait for each by itself is what promoting a
    /// message costs.
    fn promote_run(&mut self, at: Millis, most: u64) -> u64 {
        if self.has_purged() {
            return 0;
        }
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let Some(run) = self.waiting.next_run(at, most) else {
            return 0;
        };
        let mut bytes = 0;
        for (_, seq) in &run.keys {
            if let Some(message) = self.store.get_mut(*seq) {
                message.place = Place::Due;
                bytes += message.payload_len();
            }
        }
        self.waiting.plain.promote_run(&run, bytes);
        self.effects.happened.add(Happened::READY);
        self.refresh(GroupIx::NONE, at, Join::by_time(at));
        run.keys.len() as u64
    }

    /// Promotes the message that is next, if it is due at `at` and `most` is not 0;
    /// how many that are.
    fn promote_next(&mut self, at: Millis, most: u64) -> u64 {
        let seq = loop {
            let next = self.waiting.next_promotion();
            match next.filter(|(due, _)| *due <= at && most > 0) {
                None => return 0,
                Some((_, seq)) if !self.is_purged(seq) => break seq,
                Some(_) => self.drop_purged_heads(at),
            }
        };
        let group = self.store.get(seq).map_or(GroupIx::NONE, |m| m.group);
        self.promote_one(seq);
        if !group.is_some() {
            self.refresh(group, at, Join::by_time(at));
            return 1;
        }
        // A group joins the line by a step of its own, unless a purge took its
        // place from it, or it was not known when the last of very many failed
        // messages would be due.
        let known = self.groups.get(group).is_some_and(|group| {
            let is_expected = group.is_expected()
                || group.is_in_line()
                || group.backlog.all().count_at(Place::Retry) > 0;
            is_expected && !group.displaced
        });
        if !known {
            self.refresh(group, self.last, Join::by_time(at));
        }
        1
    }

    /// A waiting message's time has come.
    fn promote_one(&mut self, seq: Seq) {
        let Some(message) = self.store.get_mut(seq) else {
            return;
        };
        let from = std::mem::replace(&mut message.place, Place::Due);
        let (group, waiter) = (message.group, waiter(seq, message));
        let member = group.is_some().then(|| member(seq, message));
        self.waiting.promote(from, waiter);
        self.heed_purges(group);
        let is_ready = member.is_none_or(|member| self.promote_member(group, from, member));
        if is_ready {
            self.effects.happened.add(Happened::READY);
        }
    }

    /// The time of a message of a group has come; whether it is ready then.
    fn promote_member(&mut self, ix: GroupIx, from: Place, member: Member) -> bool {
        let promoted = self.groups.with(ix, |group| {
            group.backlog.promote(from, member);
            let pending = group.backlog.all();
            // Only the first and the last at a place change for what the group is
            // listed.
            let is_end = pending.count_at(Place::Due) == 1 || pending.count_at(from) == 0;
            (group.counted, is_end)
        });
        let (is_ready, is_end) = promoted.unwrap_or((true, false));
        if is_ready {
            self.grouped_ready += 1;
            self.grouped_ready_bytes += member.size;
        }
        if is_end {
            self.groups.settle(ix);
        }
        is_ready
    }
}
