//! Moves a message from one place to another and keeps every index in step.

use super::Queue;
use crate::backlog::Member;
use crate::consumer::ConsumerIx;
use crate::group::{Group, GroupIx};
use crate::lease::Lease;
use crate::message::Message;
use crate::op::Happened;
use crate::order_key::OrderKey;
use crate::state::Place;
use crate::waiting::Waiter;
use crate::{Millis, Seq, MAX_EXACT};

/// What is to be known of a message whose lease has ended.
pub(super) struct Ended {
    pub group: GroupIx,
    /// Bytes of its payload.
    pub size: u64,
    /// Who had it.
    pub consumer: ConsumerIx,
}

/// A pending message as the indexes know it.
pub(super) struct Stand {
    place: Place,
    group: GroupIx,
    waiter: Waiter,
    /// As its group knows it, if it has one.
    member: Option<Member>,
    /// When it expires, if it does.
    expires: Option<Millis>,
}

impl Stand {
    /// How a message stands that is pending; `ttl` is that of the queue.
    #[inline]
    pub fn of(seq: Seq, message: &Message, ttl: Millis) -> Stand {
        let group = message.group;
        Stand {
            place: message.place,
            group,
            waiter: waiter(seq, message),
            member: group.is_some().then(|| member(seq, message)),
            expires: expiry(message, ttl),
        }
    }

    /// How a message stands that is pending from now on: until its due time,
    /// or, when that has come, until there is a consumer.
    pub fn begin(seq: Seq, message: &mut Message, ttl: Millis, now: Millis) -> Stand {
        message.place = match (message.due <= now, message.failures() > 0) {
            (true, _) => Place::Due,
            (false, true) => Place::Retry,
            (false, false) => Place::Delayed,
        };
        Stand::of(seq, message, ttl)
    }
}

/// A message as what waits knows it.
pub(super) fn waiter(seq: Seq, message: &Message) -> Waiter {
    Waiter {
        seq,
        due: message.due,
        priority: message.priority,
        grouped: message.group.is_some(),
        size: message.payload_len(),
    }
}

/// A pending message as its group knows it.
pub(super) fn member(seq: Seq, message: &Message) -> Member {
    Member {
        key: order_key(seq, message),
        due: message.due,
        failed: message.failures() > 0,
        size: message.payload_len(),
    }
}

/// When a pending message expires, if it does; `ttl` is that of the queue.
fn expiry(message: &Message, ttl: Millis) -> Option<Millis> {
    let own = message.choices().and_then(|choices| choices.ttl);
    match own.unwrap_or(ttl) {
        0 => None,
        ttl => Some(message.ttl_base().saturating_add(ttl).min(MAX_EXACT)),
    }
}

/// The place of a message in the order of its group.
pub(super) fn order_key(seq: Seq, message: &Message) -> OrderKey {
    OrderKey::new(message.priority, message.score(), seq)
}

impl Queue {
    /// When a pending message expires, if it does.
    pub(super) fn expiry(&self, message: &Message) -> Option<Millis> {
        expiry(message, self.settings.ttl)
    }

    /// Lets a message wait: for its due time, or, when that has come, for a
    /// consumer. The caller refreshes its group.
    pub(super) fn enter_pending(&mut self, seq: Seq, now: Millis) {
        if let Some(message) = self.store.get_mut(seq) {
            let stand = Stand::begin(seq, message, self.settings.ttl, now);
            self.enter(stand);
        }
    }

    /// Enters a pending message in the indexes; whether it is known at once that it is
    /// due and changes nothing of what its group gives, when, or for what the group
    /// is listed, since the group stands in line and gives one before it that is due,
    /// too. Else the caller refreshes the group.
    pub(super) fn enter(&mut self, stand: Stand) -> bool {
        let Waiter { seq, due, .. } = stand.waiter;
        let mut is_behind = false;
        self.waiting.insert(stand.place, stand.waiter);
        if let Some(at) = stand.expires {
            self.expiring.insert((at, seq), ());
            self.note(at);
        }
        if let Some(member) = stand.member {
            self.heed_purges(stand.group);
            let entered = self.groups.with(stand.group, |group| {
                let is_behind = group.backlog.insert(stand.place, member);
                // One that has yet to join does so now, however its messages are kept.
                (is_behind && group.is_in_line(), group.counted)
            });
            let (changes_nothing, counted) = entered.unwrap_or_default();
            is_behind = changes_nothing;
            if counted && stand.place == Place::Due {
                self.grouped_ready += 1;
                self.grouped_ready_bytes += member.size;
                self.effects.happened.add(Happened::READY);
            }
        }
        match stand.place {
            Place::Due if !stand.group.is_some() => self.effects.happened.add(Happened::READY),
            Place::Due => {}
            _ => self.note(due),
        }
        is_behind
    }

    /// Takes a message out of what waits. The caller puts it elsewhere and
    /// refreshes its group.
    pub(super) fn leave_pending(&mut self, seq: Seq) {
        if let Some(message) = self.store.get(seq) {
            let stand = Stand::of(seq, message, self.settings.ttl);
            self.leave(stand);
        }
    }

    /// Takes a message out of the indexes of what waits, where it stood so. The
    /// caller puts it elsewhere and refreshes its group.
    pub(super) fn leave(&mut self, stood: Stand) {
        if let Some(at) = stood.expires {
            self.expiring.remove(&(at, stood.waiter.seq));
        }
        self.waiting.remove(stood.place, stood.waiter);
        if let Some(member) = stood.member {
            self.heed_purges(stood.group);
            let counted = self.groups.with(stood.group, |group| {
                group.backlog.remove(stood.place, member);
                group.counted
            });
            if counted == Some(true) && stood.place == Place::Due {
                self.uncount_ready(1, member.size);
            }
        }
    }

    /// So many messages of groups that counted as ready, with these payload bytes, do
    /// so no longer.
    pub(super) fn uncount_ready(&mut self, count: u64, bytes: u64) {
        self.grouped_ready = self.grouped_ready.saturating_sub(count);
        self.grouped_ready_bytes = self.grouped_ready_bytes.saturating_sub(bytes);
    }

    /// Ends the lease of a message, if it has one; its place is then for the
    /// caller to give.
    pub(super) fn unlease(&mut self, seq: Seq) {
        let receipt = self.store.get(seq).map_or(0, Message::receipt);
        if let Some(lease) = self.leases.take(receipt) {
            self.end_lease(lease);
        }
    }

    /// Ends a lease that was taken out; the place of its message is then for the
    /// caller to give.
    pub(super) fn end_lease(&mut self, lease: Lease) -> Option<Ended> {
        let message = self.store.get_mut(lease.seq)?;
        let (group, size) = (message.group, message.payload_len());
        message.history.stop();
        let consumer = message.history.consumer();
        self.running_bytes = self.running_bytes.saturating_sub(size);
        self.consumers.release(consumer);
        if group.is_some() {
            self.heed_purges(group);
            let over = self.leases.leave_batch(lease.receipt);
            if let Some(group) = self.groups.get_mut(group) {
                group.running -= 1;
                self.grouped_running -= 1;
                if let Some(batch) = over {
                    group.close_batch(batch.first);
                }
            }
        }
        Some(Ended {
            group,
            size,
            consumer,
        })
    }

    /// The leases of a group.
    pub(super) fn leased_of<'a>(&'a self, group: &'a Group) -> impl Iterator<Item = Lease> + 'a {
        group
            .batches()
            .flat_map(|first| self.leases.of_batch(first))
    }

    /// The messages of the batch of a running message that were delivered after
    /// it and still run.
    pub(super) fn later_of_batch(&self, seq: Seq) -> Vec<Seq> {
        let receipt = self.store.get(seq).map_or(0, Message::receipt);
        let later = self.leases.later_of_batch(receipt);
        later.map(|lease| lease.seq).collect()
    }
}
