//! Removing messages and records: all of a queue, those of a state or of a group, or some
//! named ones.

use crate::collections::rare::Rare;
use crate::message::id::Ids;
use crate::message::state::{State, StoredState};
use crate::op::{Done, Removal};
use crate::queue::bulk::sources::Source;
use crate::queue::Queue;
use crate::seeded::{seeded, Bug};
use crate::transition::Kind;
use crate::{Millis, Seq};

impl Queue {
    /// Removes messages and records, all at once. Returns how many. Their ids are free.
    ///
    /// O(groups with settings or a pause) for the whole queue, else O(log n) for each
    /// message. `plan.rs` divides a long purge into slices.
    pub(in crate::queue) fn purge(
        &mut self,
        state: Option<State>,
        group: Option<&[u8]>,
        now: Millis,
    ) -> Done {
        if state.is_none() && group.is_none() {
            return Done::Count(self.purge_all());
        }
        let mut doomed: Vec<Seq> = Vec::new();
        for source in Source::of_purge(state, group.is_some()) {
            let all = self.walk_source(source, group, None, now);
            let wanted = all.filter(|(_, seq)| self.is_in_state(*seq, state, now));
            doomed.extend(wanted.map(|(_, seq)| seq));
        }
        let removed = self.remove_each(&doomed, now);
        if let (None, Some(name)) = (state, group) {
            self.free_from_holds(name, now);
        }
        Done::Count(removed)
    }

    /// Removes some of the messages of a purge.
    pub(in crate::queue) fn remove_some(&mut self, removal: &Removal, now: Millis) -> Done {
        let removed = match removal {
            Removal::Messages(seqs) => self.remove_each(seqs, now),
            Removal::Holds(groups) => {
                for name in groups {
                    self.free_from_holds(name, now);
                }
                0
            }
            Removal::TakenIds => {
                self.forget_taken_ids();
                0
            }
        };
        Done::Count(removed)
    }

    /// Removes all messages and records, the taken ids and the holds of groups. Returns
    /// how many messages and records it removed. O(groups with settings or a pause).
    fn purge_all(&mut self) -> u64 {
        self.forget_taken_ids();
        let removed = State::ALL.iter().map(|state| self.count(*state)).sum();
        if removed > 0 || self.state.groups.held_count() > 0 {
            self.changed();
        }
        if removed > 0 {
            self.note_purge_of_all();
        }
        let watched = self.notes.watched.iter();
        let watched: Vec<Seq> = watched.filter_map(|id| self.find(id)).collect();
        for seq in watched {
            self.publish_removed(seq);
        }
        let groups = self
            .state
            .groups
            .without_messages(self.state.settings.breaker.as_ref());
        let groups = Rare::unless(groups.len() == 0, groups);
        let groups = std::mem::replace(&mut self.state.groups, groups);
        let like = Rare::unless(!self.state.store.packs(), self.state.store.like());
        let store = std::mem::replace(&mut self.state.store, like);
        self.discard_content(store, groups);
        for index in self.indexes.waiting.give_up().into_indexes() {
            self.discard_index(index);
        }
        self.indexes.first_dues = Rare::default();
        let expiring = self.indexes.expiring.give_up();
        self.discard_index(expiring);
        for index in self.state.records.give_up().into_indexes() {
            self.discard_index(index);
        }
        for line in self.indexes.ready_line.give_up().into_sets() {
            self.discard_index(line);
        }
        for lane in self.indexes.expected.give_up().into_lanes() {
            self.discard_index(lane);
        }
        let (in_step, others, ends) = self.state.leases.give_up().into_indexes();
        self.discard_series(in_step);
        self.discard_index(others);
        self.discard_index(ends);
        for index in self.indexes.held.give_up().into_indexes() {
            self.discard_index(index);
        }
        if let Some(batches) = self
            .state
            .seldom
            .used_mut()
            .and_then(|seldom| seldom.batches.take())
        {
            self.discard_batches(*batches);
        }
        self.all_children_gone();
        self.all_detached_gone();
        self.empty_limits();
        if let Some(fair) = self.state.seldom.fair_mut() {
            fair.clear();
            fair.plain = fair.plain.without_running();
        }
        self.state.ids = Ids::new(self.state.ids.salt());
        self.state.plain_position = None;
        self.withdraw_plain();
        self.indexes.grouped_ready = 0;
        self.indexes.grouped_running = 0;
        self.indexes.bytes = 0;
        self.indexes.running_bytes = 0;
        self.state.consumers.unmention_all();
        removed
    }

    /// Frees the ids of messages that have ended and left no record, and the deduplication ids.
    fn forget_taken_ids(&mut self) {
        if let Some(ids) = self
            .state
            .seldom
            .used_mut()
            .and_then(|seldom| seldom.dedup_ids.take())
        {
            self.notes.effects.changed = true;
            self.discard_dedup_ids(*ids);
        }
        let records = self.state.records.used_mut();
        let ids = records.map(|records| records.dedup.give_up());
        let ids = ids.unwrap_or_default();
        self.notes.effects.changed |= ids.oldest().is_some();
        self.discard_ids(ids);
    }

    /// Ends all holds of this group by dead messages, including those that were pruned.
    fn free_from_holds(&mut self, name: &[u8], now: Millis) {
        let Some(ix) = self.state.groups.find(name) else {
            return;
        };
        if self.end_holds(ix) {
            self.notes.effects.changed = true;
            self.refresh(ix, now, self.join(now));
        }
    }

    /// Removes these messages, as far as they exist. Returns how many were. O(log n) for
    /// each.
    pub(in crate::queue) fn remove_each(&mut self, doomed: &[Seq], now: Millis) -> u64 {
        let groups = self.groups_of(doomed.iter());
        let there = doomed.iter().filter(|seq| self.remove(**seq)).count();
        if there > 0 {
            self.changed();
        }
        self.refresh_each(&groups, now, self.join(now));
        there as u64
    }

    /// Removes a message from any state. Returns whether it was there. The caller
    /// refreshes its group.
    fn remove(&mut self, seq: Seq) -> bool {
        let Some(message) = self.state.store.get(seq) else {
            return false;
        };
        let (stored, group, size) = (message.stored, message.group, message.payload_len());
        if !seeded(Bug::RemovalUntold) {
            self.publish_removed(seq);
        }
        self.note(seq, Kind::Purged);
        match stored {
            StoredState::Delayed | StoredState::Due | StoredState::Retry | StoredState::Held => {
                self.leave_pending(seq);
                self.indexes.bytes -= size;
            }
            StoredState::Running => {
                self.unlease(seq);
                self.indexes.bytes -= size;
            }
            StoredState::Finished | StoredState::Dead | StoredState::Cancelled => {
                self.unhold(seq, group);
                self.leave_record(seq);
            }
            // It is in no state that a client can name.
            StoredState::Leaving => return false,
        }
        self.forget(seq);
        true
    }
}
