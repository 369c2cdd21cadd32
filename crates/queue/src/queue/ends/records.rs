//! The records that messages leave when they have ended, and the end of those.

use crate::index::records::Record;
use crate::message::state::{Reason, State, StoredState};
use crate::message::{Choices, Message};
use crate::queue::moves::order_key;
use crate::queue::Queue;
use crate::{Millis, Seq};

/// A record in the form of the indexes.
pub(in crate::queue) fn record(seq: Seq, message: &Message) -> Record {
    Record {
        seq,
        ended_at: message.ended_at(),
        grouped: message.group.is_some(),
        own_end: match message.stored {
            StoredState::Dead => None,
            _ => own_retain(message).map(|ms| message.ended_at().saturating_add(ms)),
        },
    }
}

/// The RETAIN of the message itself, in ms, if it has one.
fn own_retain(message: &Message) -> Option<Millis> {
    message.choices().and_then(Choices::retain)
}

impl Queue {
    /// How long the record of a message is kept after it has finished or was
    /// cancelled, in ms; 0 for not at all.
    pub(in crate::queue) fn retain_of(&self, seq: Seq) -> Millis {
        let own = match self.indexes.has_own_retain {
            true => self.state.store.get(seq).and_then(own_retain),
            false => None,
        };
        own.unwrap_or(self.state.settings.retain)
    }

    /// Keeps a message that has ended as a record, as long as the options of the queue say, or
    /// removes it.
    pub(super) fn leave_record_of(&mut self, seq: Seq, stored: StoredState, now: Millis) {
        let kept = match stored {
            StoredState::Dead => self.state.settings.dead_retain,
            _ => self.retain_of(seq),
        };
        if stored != StoredState::Dead && kept == 0 {
            if self.state.settings.dedup > 0 {
                if let Some(message) = self.state.store.get(seq) {
                    let id = self.id_of(seq, message).to_box();
                    self.state.records.dedup.remember(&id, now);
                    self.indexes.wake = self
                        .indexes
                        .wake
                        .min(now.saturating_add(self.state.settings.dedup));
                }
            }
            self.forget(seq);
            return;
        }
        self.state.store.with(seq, |message| {
            message.stored = stored;
            message.extension_mut().ended_at = now;
            if message.signal().is_some() {
                message.change_left(|more| more.signal = None);
            }
        });
        self.enter_record(seq);
        if kept > 0 {
            self.wake_by(now.saturating_add(kept));
        }
        if self.over_count(stored) {
            self.prune_oldest(stored);
        }
    }

    /// Whether more records of this kind are kept than allowed.
    pub(in crate::queue) fn over_count(&self, stored: StoredState) -> bool {
        match stored {
            StoredState::Dead => {
                let most = self.state.settings.dead_count;
                most > 0 && self.count(State::Dead) > most
            }
            _ => {
                let most = self.state.settings.retain_count;
                most > 0 && self.count(State::Finished) + self.count(State::Cancelled) > most
            }
        }
    }

    /// Removes the oldest record like this one.
    pub(in crate::queue) fn prune_oldest(&mut self, stored: StoredState) {
        let oldest = match stored {
            StoredState::Dead => self.state.records.oldest_dead(),
            _ => self.state.records.oldest_settled(),
        };
        if let Some((_, seq)) = oldest {
            self.prune(seq);
        }
    }

    /// When the next finished or cancelled record reaches its retention (Unix ms),
    /// and its number.
    pub(in crate::queue) fn next_settled_age(&self) -> Option<(Millis, Seq)> {
        let by_queue = self.state.records.oldest_by_queue();
        let by_queue =
            by_queue.map(|(at, seq)| (at.saturating_add(self.state.settings.retain), seq));
        self.state
            .records
            .next_own_end()
            .into_iter()
            .chain(by_queue)
            .min()
    }

    /// Removes the finished or cancelled record that reaches its retention next.
    pub(in crate::queue) fn prune_aged(&mut self) {
        if let Some((_, seq)) = self.next_settled_age() {
            self.prune(seq);
        }
    }

    /// Removes a record that was kept long enough by `now`, if this message is one. In a
    /// burst that is not processed yet, the record may still exist.
    pub(in crate::queue) fn prune_if_over(&mut self, seq: Seq, now: Millis) -> bool {
        let message = self.state.store.get(seq);
        let is_over = message.is_some_and(|message| self.is_over_age(message, now));
        if is_over {
            self.prune(seq);
            self.notes.effects.changed = true;
            self.notes.effects.visible = true;
        }
        is_over
    }

    /// Whether a record was kept long enough by `now`.
    pub(in crate::queue) fn is_over_age(&self, message: &Message, now: Millis) -> bool {
        let kept = match message.stored {
            StoredState::Finished | StoredState::Cancelled => {
                own_retain(message).unwrap_or(self.state.settings.retain)
            }
            StoredState::Dead if self.state.settings.dead_retain > 0 => {
                self.state.settings.dead_retain
            }
            _ => return false,
        };
        message.ended_at().saturating_add(kept) <= now
    }

    /// Removes a record; its id may stay taken.
    fn prune(&mut self, seq: Seq) {
        let Some(message) = self.state.store.get(seq) else {
            return;
        };
        if self.state.settings.dedup > 0 && message.stored != StoredState::Dead {
            let ended_at = message.ended_at();
            let id = self.id_of(seq, message).to_box();
            self.state.records.dedup.remember(&id, ended_at);
            self.indexes.wake = self
                .indexes
                .wake
                .min(ended_at.saturating_add(self.state.settings.dedup));
        }
        self.drop_record(seq);
    }

    /// Removes a record of any state. One of a dead message goes on holding its group.
    pub(in crate::queue) fn drop_record(&mut self, seq: Seq) {
        self.leave_record(seq);
        self.keep_hold(seq);
        self.forget(seq);
    }

    /// Enters an ended message in the indexes of records.
    fn enter_record(&mut self, seq: Seq) {
        let Some(message) = self.state.store.get(seq) else {
            return;
        };
        let stored = message.stored;
        self.state.records.insert(stored, record(seq, message));
        if message.group.is_some() {
            let key = order_key(seq, message);
            self.state.groups.enter_record(message.group, stored, key);
        }
    }

    /// Removes a record from the indexes.
    pub(in crate::queue) fn leave_record(&mut self, seq: Seq) {
        let Some(message) = self.state.store.get(seq) else {
            return;
        };
        let stored = message.stored;
        if message.group.is_some() {
            let key = order_key(seq, message);
            self.state.groups.leave_record(message.group, stored, &key);
        }
        self.state.records.remove(stored, record(seq, message));
    }

    /// Removes a message that is in no index any longer.
    pub(in crate::queue) fn forget(&mut self, seq: Seq) {
        if self.state.seldom.has_batches() {
            self.member_gone(seq);
        }
        if self.state.seldom.has_siblings() {
            self.child_gone(seq);
        }
        if self.state.seldom.has_detached() {
            self.detached_gone(seq);
        }
        self.state.ids.remove(&self.state.store, seq);
        let taken = self
            .state
            .store
            .remove(seq, |message| (message.history.consumer(), message.group));
        let Some((consumer, group)) = taken else {
            return;
        };
        self.state.consumers.unmention(consumer);
        if let Some(members) = self.state.groups.get_mut(group) {
            members.members -= 1;
            self.state.groups.settle(group);
        }
    }

    /// When a waiting message expired, if it has by `now`: in a burst that is still being worked off
    /// it may not be dead yet. One that is to go to another queue then is pending until that moment,
    /// since nothing but the settling of its death can tell whether it goes.
    pub(in crate::queue) fn expired_at(&self, message: &Message, now: Millis) -> Option<Millis> {
        self.overdue_at(message, now)
            .filter(|_| !self.sends_on(Reason::Expired))
    }

    /// When a waiting message expired, if it has by `now`, wherever it is to go.
    fn overdue_at(&self, message: &Message, now: Millis) -> Option<Millis> {
        if !self.has_overdue_expiry(now) || !message.stored.is_pending() {
            return None;
        }
        self.expiry(message).filter(|at| *at <= now)
    }

    /// Lets a message die as of when it expired, if it has; when that was. The caller refreshes its
    /// group.
    pub(in crate::queue) fn expire_if_over(&mut self, seq: Seq, now: Millis) -> Option<Millis> {
        if !self.has_overdue_expiry(now) {
            return None;
        }
        let at = self.overdue_at(self.state.store.get(seq)?, now)?;
        self.leave_pending(seq);
        self.die(seq, Reason::Expired, at);
        self.changed();
        Some(at)
    }
}
