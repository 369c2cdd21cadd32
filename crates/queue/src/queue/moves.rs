//! Moves a message between stored states and updates every index.
//!
//! Most changes of a message are a move: out of the indexes of the old state, a
//! change of fields, and into the indexes of the new state.

use super::Queue;
use crate::groups::backlog::Member;
use crate::groups::group::Group;
use crate::index::leases::Lease;
use crate::index::order_key::OrderKey;
use crate::index::pending_key::PendingKey;
use crate::message::state::StoredState;
use crate::message::{Choices, Message};
use crate::op::Happened;
use crate::seeded::{seeded, Bug};
use crate::transition::Kind;
use crate::{ConsumerIx, GroupIx, Millis, Seq, MAX_EXACT};

/// The facts that the caller needs about a message whose lease has ended.
pub(super) struct Ended {
    pub group: GroupIx,
    /// Payload bytes.
    pub size: u64,
    /// Consumer that had the lease.
    pub consumer: ConsumerIx,
    /// Whether it was the probe of a breaker.
    pub was_probe: bool,
}

/// A pending message with all its index keys.
pub(super) struct IndexKeys {
    pub stored: StoredState,
    group: GroupIx,
    pending_key: PendingKey,
    /// Its key in its group, if it has one.
    member: Option<Member>,
    /// When it expires (Unix ms), if it does.
    expires: Option<Millis>,
    /// When it was first due (Unix ms), if it has come back since and is due later now.
    first_due: Option<Millis>,
}

impl IndexKeys {
    /// Whether the message has expired by `now`.
    pub fn has_expired(&self, now: Millis) -> bool {
        self.expires.is_some_and(|at| at <= now)
    }

    /// The index keys of a pending message. `ttl` is the TTL of the queue in ms.
    #[inline]
    pub fn of(seq: Seq, message: &Message, ttl: Millis) -> IndexKeys {
        let group = message.group;
        IndexKeys {
            stored: message.stored,
            group,
            pending_key: pending_key(seq, message),
            member: group.is_some().then(|| member(seq, message)),
            expires: expiry(message, ttl),
            first_due: first_due(message),
        }
    }

    /// Makes a message pending: due if its due time has come, otherwise delayed or
    /// in retry. Returns its index keys.
    #[inline(always)]
    pub fn begin(seq: Seq, message: &mut Message, ttl: Millis, now: Millis) -> IndexKeys {
        message.stored = match (message.due <= now, message.has_failed()) {
            (true, _) => StoredState::Due,
            (false, true) => StoredState::Retry,
            (false, false) => StoredState::Delayed,
        };
        IndexKeys::of(seq, message, ttl)
    }
}

/// The pending key of a message, used by the indexes over all pending messages.
pub(super) fn pending_key(seq: Seq, message: &Message) -> PendingKey {
    PendingKey {
        seq,
        due: message.due,
        priority: message.priority,
        grouped: message.group.is_some(),
    }
}

/// The key of a pending message in its group.
pub(super) fn member(seq: Seq, message: &Message) -> Member {
    Member {
        key: order_key(seq, message),
        due: message.due,
        failed: message.has_failed(),
    }
}

/// When a pending message was first due (Unix ms), if it has come back since and is due
/// later now.
#[inline]
pub(super) fn first_due(message: &Message) -> Option<Millis> {
    let extension = message.extension()?;
    (extension.ttl_base < message.due).then_some(extension.ttl_base)
}

/// When a pending message expires (Unix ms), if it does. `ttl` is the TTL of the
/// queue in ms.
pub(super) fn expiry(message: &Message, ttl: Millis) -> Option<Millis> {
    let choices = message.choices();
    if let Some(at) = choices.and_then(Choices::expire_at) {
        return Some(at);
    }
    if message.stored == StoredState::Held {
        // The TTL of a held message counts from its release.
        return None;
    }
    match choices.and_then(|choices| choices.ttl).unwrap_or(ttl) {
        0 => None,
        ttl => Some(message.ttl_base().saturating_add(ttl).min(MAX_EXACT)),
    }
}

/// The key of a message in the order of its group.
pub(super) fn order_key(seq: Seq, message: &Message) -> OrderKey {
    OrderKey::new(message.priority, message.score(), seq)
}

impl Queue {
    /// When a pending message expires (Unix ms), if it does.
    pub(super) fn expiry(&self, message: &Message) -> Option<Millis> {
        expiry(message, self.state.settings.ttl)
    }

    /// Makes a message pending and enters it in the indexes. The caller refreshes
    /// its group. O(log n).
    pub(super) fn enter_pending(&mut self, seq: Seq, now: Millis) {
        if let Some(message) = self.state.store.get_mut(seq) {
            let keys = IndexKeys::begin(seq, message, self.state.settings.ttl, now);
            if keys.stored != StoredState::Due {
                self.state.store.rests_again(seq);
            }
            self.enter(keys);
        }
    }

    /// Enters a pending message in the indexes. O(log n).
    ///
    /// Returns true only if the group certainly need not be refreshed: it is in the
    /// ready line, and a due message goes before this one, so neither what it gives
    /// nor its state changes. Otherwise the caller refreshes the group. With limits it
    /// always does: a refresh chooses the limit anew for which the group waits, and whether
    /// it is known that a due message goes before this one depends on the form of the
    /// backlog, which a queue that was loaded may not share.
    pub(super) fn enter(&mut self, keys: IndexKeys) -> bool {
        let PendingKey { seq, due, .. } = keys.pending_key;
        let mut is_behind = false;
        self.indexes.waiting.insert(keys.stored, keys.pending_key);
        if let Some(at) = keys.expires {
            self.indexes.expiring.insert((at, seq), ());
            self.wake_by(at);
        }
        if let Some(at) = keys.first_due {
            self.indexes.first_dues.insert(at);
        }
        if let Some(member) = keys.member {
            let entered = self.state.groups.with(keys.group, |group| {
                let is_behind = group.backlog.insert(keys.stored, member);
                // A group that is not in the ready line yet must join it now, regardless
                // of the form in which its messages are kept.
                (is_behind && group.is_in_line(), group.counted)
            });
            let (changes_nothing, counted) = entered.unwrap_or_default();
            is_behind =
                changes_nothing && (!self.state.seldom.has_limits() || seeded(Bug::LimitByBacklog));
            if counted && keys.stored == StoredState::Due {
                self.indexes.grouped_ready += 1;
                self.notes.effects.happened.add(Happened::READY);
            }
        }
        if keys.stored == StoredState::Due {
            self.note(seq, Kind::Ready);
        }
        match keys.stored {
            StoredState::Due if !keys.group.is_some() => {
                self.notes.effects.happened.add(Happened::READY)
            }
            StoredState::Due => {}
            _ => self.wake_by(due),
        }
        is_behind
    }

    /// Removes a pending message from the indexes. The caller gives it another stored
    /// state and refreshes its group. O(log n).
    pub(super) fn leave_pending(&mut self, seq: Seq) {
        let message = self.state.store.get(seq);
        debug_assert!(message.is_some(), "the message {seq} is not there");
        if let Some(message) = message {
            if message.stored == StoredState::Held {
                return self.leave_held(seq);
            }
            let keys = IndexKeys::of(seq, message, self.state.settings.ttl);
            self.leave(keys);
        }
    }

    /// Removes a message from the indexes of pending messages, by its keys in them. The
    /// caller gives it another stored state and refreshes its group. O(log n).
    pub(super) fn leave(&mut self, keys: IndexKeys) {
        if let Some(at) = keys.expires {
            let known = self.indexes.expiring.remove(&(at, keys.pending_key.seq));
            debug_assert!(known.is_some(), "no index has the expiry of a message");
        }
        if let Some(at) = keys.first_due {
            self.indexes.first_dues.remove(at);
        }
        self.indexes.waiting.remove(keys.stored, keys.pending_key);
        if let Some(member) = keys.member {
            let counted = self.state.groups.with(keys.group, |group| {
                group.backlog.remove(keys.stored, member);
                group.counted
            });
            if counted == Some(true) && keys.stored == StoredState::Due {
                self.uncount_ready(1);
            }
        }
    }

    /// Subtracts `count` from the ready messages of groups.
    pub(super) fn uncount_ready(&mut self, count: u64) {
        debug_assert!(
            self.indexes.grouped_ready >= count,
            "ready messages are miscounted"
        );
        self.indexes.grouped_ready = self.indexes.grouped_ready.saturating_sub(count);
    }

    /// Ends the lease of a message, if it has one. The caller then sets its stored
    /// state.
    pub(super) fn unlease(&mut self, seq: Seq) -> Option<Ended> {
        let receipt = self.state.store.get(seq).map_or(0, Message::receipt);
        let lease = self.state.leases.take(receipt)?;
        self.end_lease(lease)
    }

    /// Ends a lease that was already taken out of the index of leases. The caller
    /// then sets the stored state of the message.
    pub(super) fn end_lease(&mut self, lease: Lease) -> Option<Ended> {
        if self.state.seldom.has_batches() {
            self.member_stopped(lease.seq);
        }
        if self.state.seldom.has_limits() {
            self.release_limits(lease.seq);
        }
        if self.state.seldom.has_fair() {
            self.settle_time(lease.seq);
        }
        let message = self.state.store.get_mut(lease.seq)?;
        let (group, size) = (message.group, message.payload_len());
        message.history.stop();
        let consumer = message.history.consumer();
        debug_assert!(
            self.indexes.running_bytes >= size,
            "running bytes are miscounted"
        );
        self.indexes.running_bytes = self.indexes.running_bytes.saturating_sub(size);
        self.state.consumers.release(consumer);
        if group.is_some() {
            let over = self.state.leases.leave_batch(lease.receipt);
            if let Some(group) = self.state.groups.get_mut(group) {
                group.running -= 1;
                self.indexes.grouped_running -= 1;
                if let Some(batch) = over.filter(|_| !group.is_hidden()) {
                    group.close_batch(batch.first);
                }
            }
        }
        let was_probe = self.state.settings.breaker.is_some() && self.withdraw(lease.seq, group);
        Some(Ended {
            group,
            size,
            consumer,
            was_probe,
        })
    }

    /// The leases of a group.
    pub(super) fn leased_of<'a>(&'a self, group: &'a Group) -> impl Iterator<Item = Lease> + 'a {
        group
            .batches()
            .flat_map(|first| self.state.leases.of_batch(first))
    }

    /// The running messages that were delivered in the same batch as this one, but
    /// after it.
    pub(super) fn later_of_batch(&self, seq: Seq) -> Vec<Seq> {
        let receipt = self.state.store.get(seq).map_or(0, Message::receipt);
        let later = self.state.leases.later_of_batch(receipt);
        later.map(|lease| lease.seq).collect()
    }
}
