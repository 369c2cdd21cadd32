//! Removing many messages at once.
//!
//! What is purged is gone for every client when PURGE answers. Large sets are
//! cut off whole in O(1) and freed afterwards, in slices (`discard.rs`).

use super::discard::{Discarded, Ghosts};
use super::remains::AT_ONCE;
use super::Queue;
use crate::message::id::Ids;
use crate::message::state::{State, StoredState};
use crate::op::Done;
use crate::{GroupIx, Millis, Seq};

/// Where ended messages are, and the states that this is.
const ENDED: [(StoredState, State); 3] = [
    (StoredState::Finished, State::Finished),
    (StoredState::Dead, State::Dead),
    (StoredState::Cancelled, State::Cancelled),
];

impl Queue {
    /// Removes messages and records; how many. Their ids are free.
    ///
    /// O(1) for the whole queue, for all that is in a state, and for what one
    /// group has pending; `approach.rs` says where it is not.
    pub(super) fn purge(
        &mut self,
        state: Option<State>,
        group: Option<&[u8]>,
        now: Millis,
    ) -> Done {
        let watched: Vec<Seq> = self.watched.iter().filter_map(|id| self.find(id)).collect();
        let removed = match (state, group) {
            (None, None) => self.purge_all(&watched, now),
            (state, Some(name)) => {
                let ix = self.groups.find(name);
                ix.map_or(0, |ix| self.purge_group(ix, state, now))
            }
            (Some(state), None) => self.purge_state(state, &watched, now),
        };
        if removed > 0 {
            self.effects.changed = true;
            self.effects.visible = true;
        }
        Done::Count(removed)
    }

    fn purge_all(&mut self, watched: &[Seq], now: Millis) -> u64 {
        let has_dedup = self.records.dedup.oldest().is_some();
        self.effects.changed |= has_dedup || self.groups.listed() > 0;
        if has_dedup {
            let dedup = std::mem::take(&mut self.records.dedup);
            self.discarded.push(Discarded::Dedup(Box::new(dedup)));
        }
        if !self.keeps_many_groups() {
            return self.empty(watched);
        }
        // What pruned messages hold, too.
        if self.groups.held_count() > 0 {
            let held = self.groups.purge_holds();
            self.discard_numbers(held);
            self.discarded.push(Discarded::OfGroups(0));
        }
        let states = State::ALL.iter();
        let removed = states.map(|state| self.purge_state(*state, watched, now));
        removed.sum()
    }

    /// Whether so many groups have settings or a pause that they cannot be
    /// copied in a moment.
    pub(super) fn keeps_many_groups(&self) -> bool {
        self.groups.configured_count() > AT_ONCE
    }

    /// How many messages and records there are.
    fn len(&self) -> u64 {
        State::ALL.iter().map(|state| self.count(*state)).sum()
    }

    /// Removes all messages and records; how many. O(groups with settings or a
    /// pause).
    fn empty(&mut self, watched: &[Seq]) -> u64 {
        let removed = self.len();
        for seq in watched {
            self.publish_removed(*seq);
        }
        let groups = self.groups.without_messages(self.settings.breaker.as_ref());
        let groups = std::mem::replace(&mut self.groups, groups);
        let store = std::mem::take(&mut self.store);
        let mut indexes = std::mem::take(&mut self.waiting).into_indexes();
        indexes.push(std::mem::take(&mut self.expiring));
        let dedup = std::mem::take(&mut self.records.dedup);
        let records = std::mem::take(&mut self.records);
        self.records.dedup = dedup;
        for line in std::mem::take(&mut self.ready_line).into_sets() {
            self.discarded.push(Discarded::Line(line));
        }
        let expected = std::mem::take(&mut self.expected);
        for lane in expected.into_lanes() {
            self.discarded.push(Discarded::Lane(lane));
        }
        indexes.extend([records.finished, records.cancelled, records.dead]);
        self.discard_order(records.dead_order);
        let redriving = std::mem::take(&mut self.redriving);
        self.discard_order(redriving.left);
        let remains = std::mem::take(&mut self.remains);
        indexes.push(remains.retry);
        for leases in [std::mem::take(&mut self.leases), remains.leases] {
            let (in_step, others, ends) = leases.into_indexes();
            self.discarded.push(Discarded::Series(in_step));
            self.discarded.push(Discarded::Receipts(others));
            indexes.push(ends);
        }
        self.ids = Ids::new(self.ids.salt());
        self.plain_position = None;
        self.withdraw_plain();
        self.grouped_ready = 0;
        self.grouped_ready_bytes = 0;
        self.grouped_running = 0;
        self.bytes = 0;
        self.running_bytes = 0;
        self.consumers.unmention_all();
        self.discard_all(store, groups, indexes);
        removed
    }

    fn purge_state(&mut self, state: State, watched: &[Seq], now: Millis) -> u64 {
        let stored = match state {
            State::Delayed => StoredState::Delayed,
            State::Retry => StoredState::Retry,
            State::Ready | State::Blocked => StoredState::Due,
            State::Running => StoredState::Running,
            State::Finished => StoredState::Finished,
            State::Dead => StoredState::Dead,
            State::Cancelled => StoredState::Cancelled,
        };
        let len = self.len();
        let is_all = self.count(state) == len && self.groups.held_count() == 0;
        // Where nothing is removed, nothing else may change: nobody is told.
        if is_all && len > 0 && !self.keeps_many_groups() {
            return self.empty(watched);
        }
        for seq in watched {
            let of_state = self.view(*seq, now).map(|view| view.state);
            if of_state == Some(state) {
                self.publish_removed(*seq);
            }
        }
        match stored {
            StoredState::Running => self.purge_running(now),
            StoredState::Finished | StoredState::Dead | StoredState::Cancelled => {
                self.cut_place(stored, now)
            }
            StoredState::Delayed | StoredState::Due | StoredState::Retry => {
                self.purge_pending(state, stored, now)
            }
        }
    }

    /// Removes all records at a place. O(1), but for the groups that dead ones
    /// hold: O(log n) each.
    fn cut_place(&mut self, stored: StoredState, now: Millis) -> u64 {
        let removed = self.count_stored(stored) as u64;
        let index = self.records.at_mut(stored).map(std::mem::take);
        self.cut(index.unwrap_or_default());
        if let Some(ghosts) = self.ghosts.get_mut(stored as usize) {
            *ghosts = Ghosts::default();
        }
        if stored == StoredState::Dead {
            let order = std::mem::take(&mut self.records.dead_order);
            self.discard_order(order);
        }
        if stored == StoredState::Dead && removed > 0 {
            let held: Vec<GroupIx> = self.groups.held().collect();
            for ix in held {
                self.end_holds_of_dead(ix);
                self.refresh(ix, now, self.join(now));
            }
        }
        removed
    }

    /// Removes what waits in a state.
    fn purge_pending(&mut self, state: State, stored: StoredState, now: Millis) -> u64 {
        let mut removed = 0;
        if state != State::Blocked {
            let (indexes, bytes) = self.waiting.plain.detach(stored);
            self.bytes = self.bytes.saturating_sub(bytes);
            removed += indexes
                .into_iter()
                .map(|index| self.cut(index))
                .sum::<u64>();
            if stored == StoredState::Due {
                let redriven = std::mem::take(&mut self.redriving.left.plain);
                removed += self.cut_redriven(redriven);
            }
            if removed > 0 {
                self.refresh(GroupIx::NONE, now, self.join(now));
            }
        }
        if stored == StoredState::Due {
            self.redrive_grouped();
        }
        removed
            + match state {
                State::Retry => self.purge_retry(now),
                _ => self.cut_groups(state, stored, now),
            }
    }

    fn purge_group(&mut self, ix: GroupIx, state: Option<State>, now: Millis) -> u64 {
        self.redrive_all_of(ix);
        let is_meant = |queue: &Queue, seq: Seq| {
            let message = queue.store.get(seq).filter(|message| message.group == ix);
            message.is_some_and(|m| state.is_none_or(|state| state == queue.state_of(m, now)))
        };
        for id in self.watched.clone() {
            if let Some(seq) = self.find(&id).filter(|seq| is_meant(self, *seq)) {
                self.publish_removed(seq);
            }
        }
        let mut cut = self.cut_group(ix, state);
        match state {
            None => self.effects.changed |= self.end_holds(ix),
            Some(State::Dead) => self.end_holds_of_dead(ix),
            _ => {}
        }
        for (stored, of) in ENDED {
            if state.is_none_or(|state| state == of) {
                cut += self.cut_records(ix, stored);
            }
        }
        let mut doomed = self.members(ix, state);
        doomed.retain(|seq| is_meant(self, *seq) && !self.is_purged(*seq));
        let removed = cut + self.remove_each(&doomed, now);
        if removed > 0 || self.effects.changed {
            self.refresh(ix, now, self.join(now));
        }
        removed
    }

    /// The leased messages and the records of a group that may be in this
    /// state. O(its own).
    fn members(&self, ix: GroupIx, state: Option<State>) -> Vec<Seq> {
        let Some(group) = self.groups.get(ix) else {
            return Vec::new();
        };
        let mut members: Vec<Seq> = Vec::new();
        if state.is_none_or(|state| state == State::Running) {
            members.extend(self.leased_of(group).map(|lease| lease.seq));
        }
        for (stored, of) in ENDED {
            if state.is_none_or(|state| state == of) {
                let records = group.records_at(stored).into_iter().flatten();
                members.extend(records.map(|(key, ())| key.seq()));
            }
        }
        members
    }

    pub(super) fn remove_each(&mut self, doomed: &[Seq], now: Millis) -> u64 {
        let groups = self.groups_of(doomed.iter());
        for seq in doomed {
            self.remove(*seq);
        }
        self.refresh_each(&groups, now, self.join(now));
        doomed.len() as u64
    }

    /// Removes a message or a record; the caller refreshes its group.
    fn remove(&mut self, seq: Seq) {
        let Some(message) = self.store.get(seq) else {
            return;
        };
        let (stored, group) = (message.stored, message.group);
        let size = message.payload_len();
        match stored {
            StoredState::Running => {
                self.unlease(seq);
                self.bytes -= size;
                self.forget(seq);
            }
            stored if stored.is_pending() => {
                self.leave_pending(seq);
                self.bytes -= size;
                self.forget(seq);
            }
            _ => {
                self.unhold(seq, group);
                self.drop_record(seq);
            }
        }
    }
}
