//! Purged messages: gone for every client, but not freed yet.
//!
//! They are freed by `sweep.rs`.

use super::super::group::{Group, GroupIx, GroupOrder, OrderKey};
use super::super::groups::Groups;
use super::super::lease::Leases;
use super::super::message::Message;
use super::super::ordered::OrderedSet;
use super::super::records::{DeadOrder, SendOrder};
use super::super::state::{Place, State};
use super::super::store::Store;
use super::super::{Millis, Seq, TimeIndex};
use super::place::{order_key, waiter};
use super::Queue;

/// Purged messages whose memory is still to be freed.
#[derive(Debug, Clone)]
pub(super) enum Discarded {
    /// Everything that a queue had.
    All(Box<Store>, Box<Groups>, Vec<TimeIndex>),
    /// Messages that are still in the store but in no index.
    Cut(TimeIndex),
    /// Messages of a group that are in no order of it any longer, but still
    /// among all grouped ones, by time.
    CutGroup(GroupOrder),
    /// Dead messages that were redriven but not moved yet, and are in no index.
    CutRedriven(SendOrder),
    /// Records of a group that are no longer among its own, but among all.
    CutRecords(OrderedSet<OrderKey>),
    /// Leases that are over, and their messages.
    Leases(Box<Leases>),
    /// An index of messages that stand elsewhere.
    Index(TimeIndex),
    /// The same, by the order in which dead messages are redriven.
    Order(SendOrder),
}

impl Discarded {
    /// Takes out the first of its messages that are still in the store of the
    /// queue; `None` when there are none left.
    pub fn pop_message(&mut self) -> Option<Seq> {
        match self {
            Discarded::Cut(index) => index.pop_first().map(|((_, seq), ())| seq),
            Discarded::CutGroup(order) => order.pop_first().map(|(key, _)| key.seq()),
            Discarded::CutRecords(records) => records.pop_first().map(|(key, ())| key.seq()),
            Discarded::CutRedriven(order) => order.pop_first().map(|((_, seq), ())| seq),
            Discarded::Leases(leases) => leases.pop_first(),
            Discarded::All(..) | Discarded::Index(_) | Discarded::Order(_) => None,
        }
    }

    /// Whether its messages are still in the store of the queue.
    pub fn has_messages(&self) -> bool {
        !matches!(
            self,
            Discarded::All(..) | Discarded::Index(_) | Discarded::Order(_)
        )
    }
}

/// So few messages of a group are removed one by one. Tests have small groups
/// and take the other way.
const FEW: u64 = if cfg!(test) { 1 } else { 4 };

impl Queue {
    /// Messages that stand in no index any longer but this one.
    pub(super) fn cut(&mut self, index: TimeIndex) -> u64 {
        let len = index.len() as u64;
        if len > 0 {
            self.discarded.push(Discarded::Cut(index));
        }
        len
    }

    /// The same for dead messages that were redriven.
    pub(super) fn cut_redriven(&mut self, order: SendOrder) -> u64 {
        let len = order.len() as u64;
        if len > 0 {
            self.discarded.push(Discarded::CutRedriven(order));
        }
        len
    }

    /// An index of dead messages that is of no use any longer.
    pub(super) fn discard_order(&mut self, order: DeadOrder) {
        for order in [order.plain, order.grouped] {
            if !order.is_empty() {
                self.discarded.push(Discarded::Order(order));
            }
        }
    }

    /// The dead messages that were purged hold their group no longer.
    pub(super) fn drop_purged_holds(&mut self, ix: GroupIx) {
        let Some(group) = self.groups.get_mut(ix) else {
            return;
        };
        let Some(ext) = group.ext_if_any() else {
            return;
        };
        let held_by = std::mem::take(&mut ext.held_by);
        let left = held_by
            .into_iter()
            .filter(|(seq, _)| !self.is_purged(*seq))
            .collect();
        if let Some(group) = self.groups.get_mut(ix) {
            group.ext_mut().held_by = left;
        }
    }

    /// Whether a message of the store was purged already.
    pub(super) fn is_purged(&self, seq: Seq) -> bool {
        if !self.discarded.iter().any(Discarded::has_messages) {
            return false;
        }
        self.store
            .get(seq)
            .is_some_and(|message| !self.stands(seq, message))
    }

    /// Whether a message stands in an index.
    fn stands(&self, seq: Seq, message: &Message) -> bool {
        let ended = (message.ended_at(), seq);
        match message.place {
            Place::Running => self.leases.find(message.receipt()) == Some(seq),
            Place::Dead if self.redriving.has(seq, message) => true,
            place => match self.records.at(place) {
                Some(index) => {
                    let group = self.groups.get(message.group);
                    let records = group.and_then(|group| group.records_at(place));
                    let key = order_key(seq, message);
                    index.contains(&ended)
                        && (group.is_none() || records.is_some_and(|r| r.contains(&key)))
                }
                None => match self.groups.get(message.group) {
                    None => self.waiting.contains(place, &waiter(seq, message)),
                    Some(group) => {
                        let key = order_key(seq, message);
                        group.order.contains(&key) || group.ext().failed.contains(&key)
                    }
                },
            },
        }
    }

    /// Frees the id of a message that was purged already.
    pub(super) fn free_purged(&mut self, id: &[u8]) {
        if let Some(seq) = self.ids.find(&self.store, id) {
            if self.is_purged(seq) {
                self.drop_purged(seq);
            }
        }
    }

    /// Whether all that a group has pending can be cut off at once, in these
    /// states: it is all in them, it is much, and no other index has it.
    pub(super) fn may_cut_group(&self, ix: GroupIx, state: Option<State>) -> bool {
        let Some(group) = self.groups.get(ix) else {
            return false;
        };
        let all = group.pending();
        let in_state = match state {
            None => all,
            Some(State::Delayed) if group.due + group.ext().retrying == 0 => all,
            Some(State::Retry) => group.ext().retrying,
            Some(State::Ready) if group.line.is_some() => group.due,
            Some(State::Blocked) if group.line.is_none() => group.due,
            _ => 0,
        };
        all > FEW && in_state == all
    }

    /// Cuts off all that a group has pending; how many messages. The caller
    /// refreshes the group.
    pub(super) fn cut_group(&mut self, ix: GroupIx) -> u64 {
        let Some(group) = self.groups.get_mut(ix) else {
            return 0;
        };
        let pending = group.pending();
        let (due, retrying) = (group.due, group.ext().retrying);
        let by_place = [
            (Place::Delayed, pending - due - retrying),
            (Place::Due, due),
            (Place::Retry, retrying),
        ];
        for (place, count) in by_place {
            if let Some(ghosts) = self.ghosts.get_mut(place as usize) {
                *ghosts += count;
            }
        }
        self.bytes = self.bytes.saturating_sub(group.bytes);
        (group.due, group.bytes) = (0, 0);
        let failed = group.ext_if_any().map(|ext| {
            ext.retrying = 0;
            std::mem::take(&mut ext.failed)
        });
        let order = std::mem::take(&mut group.order);
        for order in [order].into_iter().chain(failed) {
            if !order.is_empty() {
                self.discarded.push(Discarded::CutGroup(order));
            }
        }
        pending
    }

    /// Cuts off the records that a group has at a place, where they are many;
    /// how many.
    pub(super) fn cut_records(&mut self, ix: GroupIx, place: Place) -> u64 {
        // Those purged before are among them as long as they are not freed.
        if self.discarded.iter().any(Discarded::has_messages) {
            return 0;
        }
        let Some(records) = self.groups.take_records(ix, place, FEW) else {
            return 0;
        };
        let ext = self.groups.get_mut(ix).and_then(Group::ext_if_any);
        if let Some(ext) = ext.filter(|_| place == Place::Dead) {
            ext.held_by.retain(|(seq, _)| {
                let message = self.store.get(*seq);
                message.is_none_or(|message| !records.contains(&order_key(*seq, message)))
            });
        }
        let count = records.len() as u64;
        if let Some(ghosts) = self.ghosts.get_mut(place as usize) {
            *ghosts += count;
        }
        self.discarded.push(Discarded::CutRecords(records));
        count
    }

    /// Cuts off all leases with their messages, where no group has any; how
    /// many.
    pub(super) fn cut_running(&mut self) -> u64 {
        if self.grouped_running > 0 {
            return 0;
        }
        let leases = std::mem::take(&mut self.leases);
        let count = leases.len() as u64;
        if count > 0 {
            let bytes = std::mem::take(&mut self.running_bytes);
            self.bytes = self.bytes.saturating_sub(bytes);
            self.consumers.release_all();
            self.discarded.push(Discarded::Leases(Box::new(leases)));
        }
        count
    }

    /// Cuts off what groups have in this state, where that is all they have
    /// pending; how many messages. O(groups).
    pub(super) fn cut_groups(&mut self, state: State, place: Place, now: Millis) -> u64 {
        let grouped = self.waiting.grouped.count(place);
        if grouped as u64 <= FEW {
            return 0;
        }
        let mut cut = 0;
        for ix in self.groups.all() {
            if self.may_cut_group(ix, Some(state)) {
                cut += self.cut_group(ix);
                self.refresh(ix, now, self.join(now));
            }
        }
        cut
    }

    /// Everything that a queue had is to be freed.
    pub(super) fn discard_all(&mut self, store: Store, groups: Groups, indexes: Vec<TimeIndex>) {
        // What was cut off before is in that store.
        self.discarded.retain(|discarded| !discarded.has_messages());
        self.ghosts = [0; 7];
        self.discarded
            .push(Discarded::All(Box::new(store), Box::new(groups), indexes));
    }
}
