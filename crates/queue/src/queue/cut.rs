//! Cutting off what is purged: all that one group or all groups have in a
//! state.

use super::discard::{Discarded, Ghosts};
use super::Queue;
use crate::groups::backlog::GroupOrder;
use crate::groups::group::Group;
use crate::index::ready_line::Position;
use crate::message::state::{State, StoredState};
use crate::purges::Purged;
use crate::{GroupIx, Millis, Seq, IS_SMALL};

/// So few messages or records of a group are freed at once.
const FEW: usize = if IS_SMALL { 1 } else { 4 };

/// Where the pending messages of a state are.
fn place_of(state: State) -> Option<StoredState> {
    match state {
        State::Delayed => Some(StoredState::Delayed),
        State::Retry => Some(StoredState::Retry),
        State::Ready | State::Blocked => Some(StoredState::Due),
        _ => None,
    }
}

impl Queue {
    /// Cuts off all that a group has pending in a state, or in all; how many
    /// messages. The caller refreshes the group.
    pub(super) fn cut_group(&mut self, ix: GroupIx, state: Option<State>) -> u64 {
        self.heed_purges(ix);
        if state.is_none_or(|state| state == State::Retry) {
            self.drop_failed_of(ix);
        }
        let stands = self.groups.get(ix).is_some_and(Group::is_in_line);
        match state {
            None => [StoredState::Delayed, StoredState::Due, StoredState::Retry]
                .into_iter()
                .map(|stored| self.cut_group_at(ix, stored))
                .sum(),
            Some(State::Ready) if !stands => 0,
            Some(State::Blocked) if stands => 0,
            Some(state) => place_of(state).map_or(0, |stored| self.cut_group_at(ix, stored)),
        }
    }

    fn cut_group_at(&mut self, ix: GroupIx, stored: StoredState) -> u64 {
        let taken = self.groups.with(ix, |group| {
            let count = group.backlog.all().count_at(stored);
            let counted = group.counted && stored == StoredState::Due;
            (count, counted, group.backlog.take(stored))
        });
        let Some((count, counted, (orders, bytes))) = taken else {
            return 0;
        };
        if counted {
            self.uncount_ready(count, bytes);
        }
        self.bytes = self.bytes.saturating_sub(bytes);
        self.add_ghosts(stored, Ghosts { count, bytes });
        for order in orders {
            self.discard_messages(order);
        }
        count
    }

    fn add_ghosts(&mut self, stored: StoredState, more: Ghosts) {
        if let Some(ghosts) = self.ghosts.get_mut(stored as usize) {
            ghosts.count += more.count;
            ghosts.bytes += more.bytes;
        }
    }

    /// Frees messages of a group that are in no order of it any longer, at
    /// once where they are few.
    fn discard_messages(&mut self, mut order: GroupOrder) {
        if order.len() > FEW {
            self.discarded.push(Discarded::CutGroup(order));
            return;
        }
        while let Some((key, _)) = order.pop_first() {
            self.drop_purged(key.seq());
        }
    }

    /// Cuts off what groups have delayed, ready or blocked; how many messages.
    /// O(1) where time is worked off, else O(1) a group concerned.
    pub(super) fn cut_groups(&mut self, state: State, stored: StoredState, now: Millis) -> u64 {
        let purged = match state {
            State::Delayed => Some(Purged::Delayed),
            State::Ready => Some(Purged::Ready),
            State::Blocked => Some(Purged::Blocked),
            _ => None,
        };
        // Where it is not, groups may stand in line since a moment ago.
        match purged.filter(|_| self.is_worked_off(now)) {
            Some(purged) => self.purge_groups(purged, stored),
            None => self.cut_each_group(state, stored, now),
        }
    }

    fn cut_each_group(&mut self, state: State, stored: StoredState, now: Millis) -> u64 {
        let grouped = || self.waiting.grouped.indexes(stored);
        let many = grouped().map(|index| index.len()).sum::<usize>() > self.groups.len();
        let groups = match many {
            true => self.groups.all(),
            false => {
                let keys = grouped().flat_map(|index| index.iter());
                let seqs: Vec<Seq> = keys.map(|((_, seq), ())| seq).collect();
                self.groups_of(seqs.iter())
            }
        };
        let mut removed = 0;
        for ix in groups {
            let cut = self.cut_group(ix, Some(state));
            if cut > 0 {
                removed += cut;
                self.refresh(ix, now, self.join(now));
            }
        }
        removed
    }

    /// What all groups have in a state is gone: they are told later, each.
    fn purge_groups(&mut self, purged: Purged, stored: StoredState) -> u64 {
        let ghosts = self.ghosts.get(stored as usize).copied();
        let ghosts = ghosts.unwrap_or_default();
        let grouped = &self.waiting.grouped;
        let all = Ghosts {
            count: (grouped.count(stored) as u64).saturating_sub(ghosts.count),
            bytes: grouped.bytes(stored).saturating_sub(ghosts.bytes),
        };
        let ready = Ghosts {
            count: self.grouped_ready,
            bytes: self.grouped_ready_bytes,
        };
        let gone = match purged {
            Purged::Ready => ready,
            Purged::Blocked => Ghosts {
                count: all.count.saturating_sub(ready.count),
                bytes: all.bytes.saturating_sub(ready.bytes),
            },
            Purged::Delayed | Purged::Holds => all,
        };
        if gone.count == 0 {
            return 0;
        }
        if gone.count == all.count {
            let (indexes, _) = self.waiting.grouped.detach(stored);
            if let Some(ghosts) = self.ghosts.get_mut(stored as usize) {
                *ghosts = Ghosts::default();
            }
            for index in indexes {
                self.cut(index);
            }
        } else {
            self.add_ghosts(stored, gone);
        }
        self.bytes = self.bytes.saturating_sub(gone.bytes);
        if purged == Purged::Ready {
            (self.grouped_ready, self.grouped_ready_bytes) = (0, 0);
            for line in std::mem::take(&mut self.ready_line).into_sets() {
                self.discarded.push(Discarded::Line(line));
            }
        }
        self.groups.purge(purged);
        self.discarded.push(Discarded::OfGroups(0));
        gone.count
    }

    /// Rids a group of what it has lost to purges of a state of all groups:
    /// before anything else of it changes, since it stands in line as it did
    /// then. Nobody can see a difference. O(log n), and what can be freed in
    /// slices is.
    #[inline]
    pub(super) fn heed_purges(&mut self, ix: GroupIx) {
        if !self.knows_purges(ix) {
            self.rid_of_purged(ix);
        }
    }

    /// Kept apart, for most have nothing to be rid of.
    #[cold]
    fn rid_of_purged(&mut self, ix: GroupIx) {
        let Some(group) = self.groups.get(ix) else {
            return;
        };
        let lost = group.lost(self.groups.purges());
        self.groups.heed(ix);
        let rid = self.groups.with(ix, |group| {
            if lost.line {
                group.leave_line(ix);
                group.displaced = true;
                group.set_turn(0);
                // What it had is not in the queue's count any longer.
                group.counted = false;
            }
            let holds = lost.holds.then(|| group.take_holds());
            let take = |stored, group: &mut Group| group.backlog.take(stored).0;
            let delayed = lost.delayed.then(|| take(StoredState::Delayed, group));
            let due = lost.due.then(|| take(StoredState::Due, group));
            let is_idle = group.backlog.all().is_empty() && group.ext().paused_until.is_none();
            (holds, delayed, due, is_idle)
        });
        let Some((holds, delayed, due, is_idle)) = rid else {
            return;
        };
        self.expect_next(ix);
        if is_idle {
            self.groups.wake_at(ix, None);
        }
        self.groups.settle(ix);
        if let Some(mut holds) = holds {
            self.discard_numbers(holds.take_dead());
        }
        // Delayed ones are freed by the index of all of them.
        for order in delayed.into_iter().flatten() {
            if order.len() > FEW {
                self.discarded.push(Discarded::GroupOrder(order));
            }
        }
        for order in due.into_iter().flatten() {
            self.discard_messages(order);
        }
    }

    /// Whether a group has lost nothing without knowing it.
    #[inline]
    pub(super) fn knows_purges(&self, ix: GroupIx) -> bool {
        let group = self.groups.get(ix);
        group.is_none_or(|group| group.known == self.groups.purges().all())
    }

    /// Lets those groups know of purges that time would come across by `now`.
    pub(super) fn heed_heads(&mut self, now: Millis) {
        if !self.discarded.has_of_groups() {
            return;
        }
        while let Some(key) = self.expected.next() {
            if key.join.time > now || self.knows_purges(key.group) {
                break;
            }
            self.heed_purges(key.group);
        }
        while let Some((at, ix)) = self.groups.next_wake() {
            if at > now || self.knows_purges(ix) {
                break;
            }
            self.heed_purges(ix);
        }
    }

    /// Lets all groups know of purges. O(groups) where any does not.
    pub(super) fn heed_all(&mut self) {
        if self.discarded.has_of_groups() {
            for ix in self.groups.all() {
                self.heed_purges(ix);
            }
            self.discarded.forget_of_groups();
        }
    }

    /// Where a group stands in line.
    pub(super) fn stands(&self, ix: GroupIx, group: &Group) -> Option<Position> {
        group.stands(ix, self.groups.purges())
    }

    /// Where time has let a group stand by `now`, if the line does not know it
    /// yet.
    pub(super) fn given_position(
        &self,
        ix: GroupIx,
        group: &Group,
        now: Millis,
    ) -> Option<Position> {
        if group.known == self.groups.purges().all() {
            return group.given_position(ix, now);
        }
        if group.is_displaced(self.groups.purges()) {
            return None;
        }
        let positions = self.expected_of(ix, group, self.stands(ix, group));
        positions
            .into_iter()
            .rev()
            .find(|stored| stored.join.time <= now)
    }

    /// When a group is to be looked at again though nothing happens to it.
    pub(super) fn wake_of(&self, group: &Group) -> Option<Millis> {
        let is_idle = self.pending(group).is_empty() && group.ext().paused_until.is_none();
        group.ext().wake.filter(|_| !is_idle)
    }

    /// Cuts off the records that a group has at a place, where they are many;
    /// how many.
    pub(super) fn cut_records(&mut self, ix: GroupIx, stored: StoredState) -> u64 {
        // Those purged before are among them as long as they are not freed.
        if self.discarded.has_messages() {
            return 0;
        }
        let Some(records) = self.groups.take_records(ix, stored, FEW) else {
            return 0;
        };
        let count = records.len() as u64;
        self.add_ghosts(stored, Ghosts { count, bytes: 0 });
        self.discarded.push(Discarded::CutRecords(records));
        count
    }
}
