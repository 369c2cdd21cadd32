//! The delivery of one message: its lease, or its end with NOACK, and all that counts it.

use std::num::NonZeroU64;

use super::round::Round;
use crate::index::leases::Lease;
use crate::message::state::{State, StoredState};
use crate::op::{Delivered, Gone};
use crate::queue::moves::IndexKeys;
use crate::queue::Queue;
use crate::{Seq, MAX_EXACT};

impl Queue {
    /// Delivers one message. The caller updates the position of its group or of the
    /// ungrouped messages. Returns whether there is such a message.
    pub(super) fn deliver(&mut self, seq: Seq, round: &mut Round) -> bool {
        let now = round.now;
        let leased = !round.fetch.no_ack;
        let receipt = if leased { round.next_receipt } else { 0 };
        let settings = &self.state.settings;
        let Some(message) = self.state.store.get_mut(seq) else {
            return false;
        };
        let keys = IndexKeys::of(seq, message, settings.ttl);
        let late = now.saturating_sub(message.due);
        let size = message.payload_len();
        let group = message.group;
        if leased {
            message.stored = StoredState::Running;
        }
        let own_lease = message.choices().and_then(|choices| choices.lease);
        let own_lease = own_lease.map(NonZeroU64::get);
        let lease = round.fetch.lease.or(own_lease).unwrap_or(settings.lease);
        let bytes = message.extension_bytes();
        let history = &mut message.history;
        let before = history.consumer();
        let attempt = history.start(message.due, now, receipt, round.consumer);
        let grown = message.extension_bytes() - bytes;
        self.state.store.count_extension(grown);
        let was = keys.stored;
        self.leave(keys);
        if self.has_events() {
            self.note_delivery(seq, was, now);
        }
        if self.state.seldom.has_fair() {
            self.charge(seq, leased);
        }
        if self.state.seldom.has_limits() {
            self.count_in_limits(seq, now, leased);
        }
        self.state.consumers.unmention(before);
        self.state.consumers.deliver(round.consumer, leased);
        if let Some(rate) = self.state.settings.rate {
            self.state.seldom.window.count(rate, now, 1);
        }
        self.state.totals.delivered += 1;
        self.state.totals.redelivered += u64::from(attempt > 1);
        self.state.lateness.count(late);
        if leased && self.state.settings.breaker.is_some() {
            self.let_out(seq, group, now);
        }
        let gone = if leased {
            let until = now.saturating_add(lease).min(MAX_EXACT);
            self.state.leases.insert(Lease {
                receipt,
                seq,
                until,
            });
            self.wake_by(until);
            self.indexes.running_bytes += size;
            self.state.last_receipt = receipt;
            round.next_receipt += 1;
            if self.state.seldom.has_batches() {
                self.member_started(seq);
            }
            if let Some(group) = self.state.groups.get_mut(group) {
                group.running += 1;
                self.indexes.grouped_running += 1;
            }
            None
        } else {
            self.finish_at_once(seq, size, round)
        };
        let delivered = Delivered {
            seq,
            receipt,
            attempt,
            gone,
        };
        round.give(delivered, size);
        true
    }

    /// Finishes a message that was delivered with NOACK. Returns the message itself
    /// if the queue does not keep its record, or has so many records that this one
    /// may be pruned before the operation ends.
    fn finish_at_once(&mut self, seq: Seq, size: u64, round: &Round) -> Option<Box<Gone>> {
        self.indexes.bytes -= size;
        let most = self.state.settings.retain_count;
        let records = self.count(State::Finished) + self.count(State::Cancelled);
        let is_kept =
            self.retain_of(seq) > 0 && (most == 0 || records.saturating_add(round.left) <= most);
        let message = self.state.store.get(seq).filter(|_| !is_kept);
        let gone = message.map(|message| {
            let group = self.state.groups.name(message.group);
            let content = self.state.store.content(message);
            let gone = Gone::of(message, content, group, self.batch_of(seq));
            gone.with_parent(self.parent_of(seq))
        });
        self.end(seq, StoredState::Finished, round.now);
        gone.map(Box::new)
    }
}
