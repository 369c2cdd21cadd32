//! Purged messages: gone for every client, but not freed yet.
//!
//! They are freed by `sweep.rs`.

use super::moves::{order_key, pending_key};
use super::Queue;
use crate::collections::ordered::OrderedSet;
use crate::groups::backlog::GroupOrder;
use crate::groups::Groups;
use crate::index::leases::{Lease, Leases, Series};
use crate::index::order_key::OrderKey;
use crate::index::ready_line::{Lane, Position};
use crate::index::records::{DeadOrder, DedupMemory, SendOrder};
use crate::message::state::StoredState;
use crate::message::store::Store;
use crate::message::Message;
use crate::{Seq, TimeIndex};

/// Purged messages whose memory is still to be freed.
#[derive(Debug, Clone)]
pub(super) enum Discarded {
    /// Everything that a queue had.
    All(Box<Store>, Box<Groups>, Vec<TimeIndex>),
    /// Messages that are still in the store but stand nowhere.
    Cut(TimeIndex),
    /// Messages of a group that are in no order of it any longer, but maybe
    /// still among all grouped ones, by time.
    CutGroup(GroupOrder),
    /// Dead messages that were redriven but not moved yet, and are in no index.
    CutRedriven(SendOrder),
    /// Records of a group that are no longer among its own, but among all.
    CutRecords(OrderedSet<OrderKey>),
    /// Leases that are over, and their messages.
    Leases(Box<Leases>),
    /// What the groups from this number on have lost without knowing it.
    OfGroups(u64),
    /// An index of messages that stand elsewhere, or are discarded there.
    Index(TimeIndex),
    /// The same, by the order in which dead messages are redriven.
    Order(SendOrder),
    /// The same, in the order of their group.
    GroupOrder(GroupOrder),
    /// The same of leases that end in the order of their receipts.
    Series(Series),
    /// The same of others, by receipt.
    Receipts(OrderedSet<Lease>),
    /// Places in the line that groups have lost.
    Line(OrderedSet<Position>),
    /// The same of places that time would have given.
    Lane(Lane),
    /// The numbers of dead messages that hold a group no longer, or of groups
    /// that are held no longer.
    Numbers(OrderedSet<u64>),
    /// Ids that are free again.
    Dedup(Box<DedupMemory>),
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
            Discarded::Leases(leases) => leases.pop(),
            _ => None,
        }
    }

    /// Whether its messages are still in the store of the queue.
    fn has_messages(&self) -> bool {
        match self {
            Discarded::Cut(_)
            | Discarded::CutGroup(_)
            | Discarded::CutRedriven(_)
            | Discarded::CutRecords(_)
            | Discarded::Leases(_)
            | Discarded::OfGroups(_) => true,
            Discarded::All(..)
            | Discarded::Index(_)
            | Discarded::Order(_)
            | Discarded::GroupOrder(_)
            | Discarded::Series(_)
            | Discarded::Receipts(_)
            | Discarded::Line(_)
            | Discarded::Lane(_)
            | Discarded::Numbers(_)
            | Discarded::Dedup(_) => false,
        }
    }

    /// Drops up to about `most` entries of something without messages; how
    /// many.
    pub fn drain_some(&mut self, most: usize) -> usize {
        match self {
            Discarded::Index(index) => index.drain_some(most),
            Discarded::Order(order) => order.drain_some(most),
            Discarded::GroupOrder(order) => order.drain_some(most),
            Discarded::Series(leases) => leases.drain_some(most),
            Discarded::Receipts(receipts) => receipts.drain_some(most),
            Discarded::Line(line) => line.drain_some(most),
            Discarded::Lane(lane) => lane.drain_some(most),
            Discarded::Numbers(numbers) => numbers.drain_some(most),
            // Each is an allocation of its own.
            Discarded::Dedup(ids) => ids.drain_some(most / 16 + 1),
            _ => 0,
        }
    }
}

/// All that is discarded; the last is freed first.
#[derive(Debug, Clone, Default)]
pub(super) struct Discards {
    list: Vec<Discarded>,
    with_messages: usize,
    of_groups: usize,
}

impl Discards {
    pub fn push(&mut self, discarded: Discarded) {
        self.with_messages += usize::from(discarded.has_messages());
        self.of_groups += usize::from(matches!(discarded, Discarded::OfGroups(_)));
        self.list.push(discarded);
    }

    pub fn last_mut(&mut self) -> Option<&mut Discarded> {
        self.list.last_mut()
    }

    pub fn pop(&mut self) {
        if let Some(popped) = self.list.pop() {
            self.with_messages -= usize::from(popped.has_messages());
            self.of_groups -= usize::from(matches!(popped, Discarded::OfGroups(_)));
        }
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether any of it has messages that are still in the store. O(1).
    pub fn has_messages(&self) -> bool {
        self.with_messages > 0
    }

    /// Whether there may be groups that have lost something without knowing
    /// it. O(1).
    pub fn has_of_groups(&self) -> bool {
        self.of_groups > 0
    }

    /// All groups know what they have lost.
    pub fn forget_of_groups(&mut self) {
        self.list
            .retain(|discarded| !matches!(discarded, Discarded::OfGroups(_)));
        self.with_messages -= std::mem::take(&mut self.of_groups);
    }

    /// Takes out the records of groups.
    pub fn take_records(&mut self) -> Vec<OrderedSet<OrderKey>> {
        let mut taken = Vec::new();
        self.list.retain_mut(|discarded| match discarded {
            Discarded::CutRecords(records) => {
                taken.push(std::mem::take(records));
                false
            }
            _ => true,
        });
        self.with_messages -= taken.len();
        taken
    }

    /// Forgets what is in the store.
    fn forget_messages(&mut self) {
        self.list.retain(|discarded| !discarded.has_messages());
        self.with_messages = 0;
        self.of_groups = 0;
    }
}

/// Purged messages that an index still has.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ghosts {
    /// How many.
    pub count: u64,
    /// Their payload bytes, where they were pending.
    pub bytes: u64,
}

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

    /// Numbers that are of no use any longer.
    pub(super) fn discard_numbers(&mut self, numbers: OrderedSet<u64>) {
        if !numbers.is_empty() {
            self.discarded.push(Discarded::Numbers(numbers));
        }
    }

    /// Whether any message of the store was purged already.
    pub(super) fn has_purged(&self) -> bool {
        self.discarded.has_messages() || !self.remains.is_empty()
    }

    /// Whether a message of the store was purged already.
    pub(super) fn is_purged(&self, seq: Seq) -> bool {
        if !self.has_purged() {
            return false;
        }
        self.store.get(seq).is_some_and(|message| {
            self.is_remains(seq, message) || !self.stands_somewhere(seq, message)
        })
    }

    /// Whether a message stands in an index.
    fn stands_somewhere(&self, seq: Seq, message: &Message) -> bool {
        let ended = (message.ended_at(), seq);
        match message.stored {
            StoredState::Running => {
                let lease = self.leases.find(message.receipt());
                lease.is_some_and(|lease| lease.seq == seq)
            }
            StoredState::Dead if self.redriving.has(seq, message) => true,
            stored => match self.records.at(stored) {
                Some(index) => {
                    let group = self.groups.get(message.group);
                    let records = group.and_then(|group| group.records_at(stored));
                    let key = order_key(seq, message);
                    index.contains(&ended)
                        && (group.is_none() || records.is_some_and(|r| r.contains(&key)))
                }
                None => match self.groups.get(message.group) {
                    None => self.waiting.contains(stored, &pending_key(seq, message)),
                    Some(group) => {
                        let key = order_key(seq, message);
                        let pending = self.pending(group);
                        pending.fresh.contains(&key) || pending.failed.contains(&key)
                    }
                },
            },
        }
    }

    /// Frees the id of a message that was purged already.
    pub(super) fn free_purged(&mut self, id: &[u8]) {
        if let Some(seq) = self.ids.find(&self.store, id) {
            if self.counts_purged(seq) {
                self.drop_remains(seq);
            } else if self.is_purged(seq) {
                self.drop_purged(seq);
            }
        }
    }

    /// Everything that a queue had is to be freed.
    pub(super) fn discard_all(&mut self, store: Store, groups: Groups, indexes: Vec<TimeIndex>) {
        // What was cut off before is in that store.
        self.discarded.forget_messages();
        self.ghosts = Default::default();
        self.remains = Default::default();
        self.discarded
            .push(Discarded::All(Box::new(store), Box::new(groups), indexes));
    }
}
