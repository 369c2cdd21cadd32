//! Removing many messages at once.
//!
//! What is purged is gone for every client when PURGE answers. Large sets are
//! cut off whole in O(1) and freed afterwards, in slices (`discard.rs`).

use super::super::group::GroupIx;
use super::super::id::Ids;
use super::super::line::Expected;
use super::super::op::Done;
use super::super::ordered::OrderedSet;
use super::super::state::{Place, State};
use super::super::{Millis, Seq};
use super::Queue;

impl Queue {
    /// Removes messages and records; how many. Their ids are free.
    ///
    /// O(1) for the whole queue, and for a state as far as its messages have
    /// no group and no TTL; else O(log n) a message.
    pub(super) fn purge(
        &mut self,
        state: Option<State>,
        group: Option<&[u8]>,
        now: Millis,
    ) -> Done {
        let watched: Vec<Seq> = self.watched.iter().filter_map(|id| self.find(id)).collect();
        let removed = match (state, group) {
            (None, None) => self.purge_all(&watched),
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

    fn purge_all(&mut self, watched: &[Seq]) -> u64 {
        self.finish_redriving();
        for seq in watched {
            self.tell_removed(*seq);
        }
        let removed = State::ALL.iter().map(|state| self.count(*state)).sum();
        let had_holds = self.groups.listed() > 0 || self.records.dedup.oldest().is_some();
        self.effects.changed |= had_holds;
        let groups = self.groups.without_messages();
        let groups = std::mem::replace(&mut self.groups, groups);
        let store = std::mem::take(&mut self.store);
        let mut indexes = std::mem::take(&mut self.waiting).into_indexes();
        indexes.push(std::mem::take(&mut self.expiring));
        let records = std::mem::take(&mut self.records);
        indexes.extend([records.finished, records.cancelled, records.dead]);
        indexes.push(std::mem::take(&mut self.leases).into_by_end());
        self.ids = Ids::new(self.ids.salt());
        self.line = OrderedSet::new();
        self.expected = Expected::default();
        self.plain_line = None;
        self.grouped_ready = 0;
        self.bytes = 0;
        self.consumers.unmention_all();
        self.discard_all(store, groups, indexes);
        removed
    }

    fn purge_state(&mut self, state: State, watched: &[Seq], now: Millis) -> u64 {
        self.finish_redriving();
        let place = match state {
            State::Delayed => Place::Delayed,
            State::Retry => Place::Retry,
            State::Ready | State::Blocked => Place::Due,
            State::Running => Place::Running,
            State::Finished => Place::Finished,
            State::Dead => Place::Dead,
            State::Cancelled => Place::Cancelled,
        };
        for seq in watched {
            let of_state = self.store.get(*seq).map(|m| self.state_of(m, now));
            if of_state == Some(state) {
                self.tell_removed(*seq);
            }
        }
        let mut removed = 0;
        if place.is_ended() && (place != Place::Dead || !self.groups.any_held()) {
            let index = self.records.at_mut(place).map(std::mem::take);
            return self.cut(index.unwrap_or_default());
        }
        if place.is_pending() && state != State::Blocked && self.expiring.is_empty() {
            let (indexes, bytes) = self.waiting.plain.detach(place);
            self.bytes = self.bytes.saturating_sub(bytes);
            for index in indexes {
                removed += self.cut(index);
            }
            if removed > 0 {
                self.refresh(GroupIx::NONE, now, self.join(now));
            }
        }
        if place.is_pending() {
            removed += self.cut_groups(state, place, now);
        }
        if self.count_place(place) == 0 {
            return removed;
        }
        let doomed: Vec<Seq> = self
            .seqs_at(place)
            .filter(|seq| {
                let message = self.store.get(*seq);
                message.is_some_and(|m| self.state_of(m, now) == state) && !self.is_purged(*seq)
            })
            .collect();
        removed + self.remove_each(&doomed, now)
    }

    fn purge_group(&mut self, ix: GroupIx, state: Option<State>, now: Millis) -> u64 {
        self.finish_redriving();
        for id in self.watched.clone() {
            let watched = self.find(&id).and_then(|seq| {
                let message = self.store.get(seq)?;
                let wanted = message.group == ix
                    && state.is_none_or(|state| state == self.state_of(message, now));
                wanted.then_some(seq)
            });
            if let Some(seq) = watched {
                self.tell_removed(seq);
            }
        }
        let mut cut = 0;
        if self.may_cut_group(ix, state) {
            cut = self.cut_group(ix);
        }
        let mut doomed: Vec<Seq> = Vec::new();
        let pending = |state: State| {
            !matches!(
                state,
                State::Running | State::Finished | State::Dead | State::Cancelled
            )
        };
        if state.is_none_or(pending) {
            if let Some(group) = self.groups.get(ix) {
                let keys = group.failed.iter().chain(group.order.iter());
                doomed.extend(keys.map(|(key, _)| key.seq()));
            }
        }
        for (place, of) in [
            (Place::Running, State::Running),
            (Place::Finished, State::Finished),
            (Place::Dead, State::Dead),
            (Place::Cancelled, State::Cancelled),
        ] {
            let left = self.groups.get(ix).map_or(0, |group| match place {
                Place::Running => group.running,
                _ => group.members,
            });
            if state.is_none_or(|state| state == of) && left > 0 {
                doomed.extend(self.seqs_at(place).filter(|seq| {
                    let message = self.store.get(*seq);
                    message.is_some_and(|message| message.group == ix)
                }));
            }
        }
        if let Some(state) = state {
            doomed.retain(|seq| {
                let message = self.store.get(*seq);
                message.is_some_and(|m| self.state_of(m, now) == state)
            });
        }
        if state.is_none() {
            if let Some(group) = self.groups.get_mut(ix) {
                self.effects.changed |= !group.held_by.is_empty();
                group.held_by.clear();
            }
        }
        let removed = cut + self.remove_each(&doomed, now);
        if removed > 0 || self.effects.changed {
            self.refresh(ix, now, self.join(now));
        }
        removed
    }

    fn seqs_at(&self, place: Place) -> Box<dyn Iterator<Item = Seq> + '_> {
        if place == Place::Running {
            let receipts = self.leases.by_end().iter();
            return Box::new(receipts.filter_map(|((_, receipt), ())| self.leases.find(receipt)));
        }
        if let Some(index) = self.records.at(place) {
            return Box::new(index.iter().map(|((_, seq), ())| seq));
        }
        let indexes = self.waiting.indexes(place);
        Box::new(indexes.flat_map(|index| index.iter().map(|((_, seq), ())| seq)))
    }

    fn remove_each(&mut self, doomed: &[Seq], now: Millis) -> u64 {
        let groups = self.groups_of(doomed.iter());
        for seq in doomed {
            self.remove(*seq);
        }
        self.refresh_each(&groups, now, self.join(now));
        doomed.len() as u64
    }

    /// Removes one message or record, wherever it stands; the caller refreshes
    /// its group.
    fn remove(&mut self, seq: Seq) {
        let Some(message) = self.store.get(seq) else {
            return;
        };
        let (place, group) = (message.place, message.group);
        let size = message.payload().len() as u64;
        match place {
            Place::Running => {
                self.unlease(seq);
                self.bytes -= size;
                self.forget(seq);
            }
            place if place.is_pending() => {
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
