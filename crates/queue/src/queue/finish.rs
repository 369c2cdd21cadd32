//! The end of a message, the record it leaves, and the end of that.

use super::moves::order_key;
use super::Queue;
use crate::index::records::Record;
use crate::message::state::{Reason, State, StoredState};
use crate::message::{Choices, Message};
use crate::op::{Ending, Happened};
use crate::settings::OnDead;
use crate::{Millis, Seq};

/// A record in the form of the indexes.
pub(super) fn record(seq: Seq, message: &Message) -> Record {
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
    pub(super) fn retain_of(&self, seq: Seq) -> Millis {
        let own = match self.has_own_retain {
            true => self.store.get(seq).and_then(own_retain),
            false => None,
        };
        own.unwrap_or(self.settings.retain)
    }

    /// A message that neither waits nor runs any longer has ended.
    pub(super) fn end(&mut self, seq: Seq, stored: StoredState, now: Millis) {
        self.publish_end(seq, stored);
        self.note_end(seq, stored, now);
        let was_dead = self.siblings.is_some() && self.is_at(seq, StoredState::Dead);
        if self.batches.is_some() {
            self.member_ended(seq, stored, now);
        }
        if self.siblings.is_some() {
            self.child_ended(seq, was_dead, stored);
        }
        if self.has_reruns && self.end_for_rerun(seq, stored) {
            return;
        }
        let kept = match stored {
            StoredState::Dead => self.settings.dead_retain,
            _ => self.retain_of(seq),
        };
        if stored != StoredState::Dead && kept == 0 {
            if self.settings.dedup > 0 {
                if let Some(message) = self.store.get(seq) {
                    let id = self.id_of(seq, message).to_box();
                    self.records.dedup.remember(&id, now);
                    self.wake = self.wake.min(now.saturating_add(self.settings.dedup));
                }
            }
            self.forget(seq);
            return;
        }
        self.store.with(seq, |message| {
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
    pub(super) fn over_count(&self, stored: StoredState) -> bool {
        match stored {
            StoredState::Dead => {
                let most = self.settings.dead_count;
                most > 0 && self.count(State::Dead) > most.saturating_add(self.moving())
            }
            _ => {
                let most = self.settings.retain_count;
                most > 0 && self.count(State::Finished) + self.count(State::Cancelled) > most
            }
        }
    }

    /// Removes the oldest record like this one.
    pub(super) fn prune_oldest(&mut self, stored: StoredState) {
        let oldest = match stored {
            StoredState::Dead => self.records.oldest_dead(),
            _ => self.records.oldest_settled(),
        };
        if let Some((_, seq)) = oldest {
            self.prune(seq);
        }
    }

    /// When the next finished or cancelled record reaches its retention (Unix ms),
    /// and its number.
    pub(super) fn next_settled_age(&self) -> Option<(Millis, Seq)> {
        let by_queue = self.records.oldest_by_queue();
        let by_queue = by_queue.map(|(at, seq)| (at.saturating_add(self.settings.retain), seq));
        self.records
            .next_own_end()
            .into_iter()
            .chain(by_queue)
            .min()
    }

    /// Removes the finished or cancelled record that reaches its retention next.
    pub(super) fn prune_aged(&mut self) {
        if let Some((_, seq)) = self.next_settled_age() {
            self.prune(seq);
        }
    }

    /// Removes a record that was kept long enough by `now`, if this message is one. In a
    /// burst that is not processed yet, the record may still exist.
    pub(super) fn prune_if_over(&mut self, seq: Seq, now: Millis) -> bool {
        let message = self.store.get(seq);
        let is_over = message.is_some_and(|message| self.is_over_age(message, now));
        if is_over {
            self.prune(seq);
            self.effects.changed = true;
            self.effects.visible = true;
        }
        is_over
    }

    /// Whether a record was kept long enough by `now`.
    pub(super) fn is_over_age(&self, message: &Message, now: Millis) -> bool {
        let kept = match message.stored {
            StoredState::Finished | StoredState::Cancelled => {
                own_retain(message).unwrap_or(self.settings.retain)
            }
            StoredState::Dead if self.settings.dead_retain > 0 => self.settings.dead_retain,
            _ => return false,
        };
        message.ended_at().saturating_add(kept) <= now
    }

    /// Removes a record; its id may stay taken.
    fn prune(&mut self, seq: Seq) {
        let Some(message) = self.store.get(seq) else {
            return;
        };
        if self.settings.dedup > 0 && message.stored != StoredState::Dead {
            let ended_at = message.ended_at();
            let id = self.id_of(seq, message).to_box();
            self.records.dedup.remember(&id, ended_at);
            self.wake = self.wake.min(ended_at.saturating_add(self.settings.dedup));
        }
        self.drop_record(seq);
    }

    /// Removes a record of any state. One of a dead message goes on holding its group.
    pub(super) fn drop_record(&mut self, seq: Seq) {
        self.leave_record(seq);
        self.keep_hold(seq);
        self.forget(seq);
    }

    /// Enters an ended message in the indexes of records.
    fn enter_record(&mut self, seq: Seq) {
        let Some(message) = self.store.get(seq) else {
            return;
        };
        let stored = message.stored;
        self.records.insert(stored, record(seq, message));
        if message.group.is_some() {
            let key = order_key(seq, message);
            self.groups.enter_record(message.group, stored, key);
        }
    }

    /// Removes a record from the indexes.
    pub(super) fn leave_record(&mut self, seq: Seq) {
        let Some(message) = self.store.get(seq) else {
            return;
        };
        let stored = message.stored;
        if message.group.is_some() {
            let key = order_key(seq, message);
            self.groups.leave_record(message.group, stored, &key);
        }
        self.records.remove(stored, record(seq, message));
    }

    /// Removes a message that is in no index any longer.
    pub(super) fn forget(&mut self, seq: Seq) {
        if self.batches.is_some() {
            self.member_gone(seq);
        }
        if self.siblings.is_some() {
            self.child_gone(seq);
        }
        if self.detached.is_some() {
            self.detached_gone(seq);
        }
        self.ids.remove(&self.store, seq);
        let taken = self
            .store
            .remove(seq, |message| (message.history.consumer(), message.group));
        let Some((consumer, group)) = taken else {
            return;
        };
        self.consumers.unmention(consumer);
        if let Some(members) = self.groups.get_mut(group) {
            members.members -= 1;
            self.groups.settle(group);
        }
    }

    /// A message that neither waits nor runs any longer dies.
    pub(super) fn die(&mut self, seq: Seq, reason: Reason, now: Millis) {
        self.totals.deaths += 1;
        self.totals.expired += u64::from(reason == Reason::Expired);
        self.effects.happened.add(Happened::DEAD);
        let group = self.store.with(seq, |message| {
            message.extension_mut().texts_mut().reason = Some(reason);
            (message.group, message.payload_len())
        });
        let Some((group, bytes)) = group else {
            return;
        };
        self.bytes -= bytes;
        if self.settings.on_dead == OnDead::Block && self.groups.name(group).is_some() {
            self.hold(seq, group);
        }
        self.note_death(seq, reason);
        self.end(seq, StoredState::Dead, now);
    }

    /// When a waiting message expired, if it has by `now`: in a burst that is
    /// still being worked off it may not be dead yet.
    pub(super) fn expired_at(&self, message: &Message, now: Millis) -> Option<Millis> {
        if !self.has_overdue_expiry(now) || !message.stored.is_pending() {
            return None;
        }
        self.expiry(message).filter(|at| *at <= now)
    }

    /// Lets a message die as of when it expired, if it has; when that was. The
    /// caller refreshes its group.
    pub(super) fn expire_if_over(&mut self, seq: Seq, now: Millis) -> Option<Millis> {
        if !self.has_overdue_expiry(now) {
            return None;
        }
        let at = self.expired_at(self.store.get(seq)?, now)?;
        self.leave_pending(seq);
        self.die(seq, Reason::Expired, at);
        self.effects.changed = true;
        self.effects.visible = true;
        Some(at)
    }

    /// The end of a message, and its result or error, if it has ended and is still there.
    pub fn ended(&self, seq: Seq) -> Option<(State, Option<&[u8]>)> {
        let message = self.store.get(seq)?;
        if !message.stored.is_ended() {
            return None;
        }
        let state = self.view(seq, self.last)?.state;
        let texts = message.texts();
        let text = match state {
            State::Finished => texts.and_then(|texts| texts.result.as_deref()),
            State::Dead => texts.and_then(|texts| texts.error.as_deref()),
            State::Cancelled => None,
            _ => return None,
        };
        Some((state, text))
    }

    /// Makes sure that the end of the message with this id is reported, as
    /// [`Queue::watch`] does, if the message exists and has not ended. Otherwise returns
    /// its end.
    pub fn watch_again(&mut self, id: Box<[u8]>) -> Option<Ending> {
        let end = match self.find(&id) {
            Some(seq) => match self.ended(seq) {
                Some((state, text)) => Some((state, text.map(Into::into))),
                None => {
                    self.watch(&id);
                    return None;
                }
            },
            None => None,
        };
        Some(Ending { id, end })
    }

    /// Reports the end of this message to the clients that wait for it.
    fn publish_end(&mut self, seq: Seq, stored: StoredState) {
        if self.watched.is_empty() {
            return;
        }
        let Some(message) = self.store.get(seq) else {
            return;
        };
        let id = self.id_of(seq, message).to_box();
        if !self.watched.remove(&id) {
            return;
        }
        let texts = message.texts();
        let end = match stored {
            StoredState::Finished => (State::Finished, texts.and_then(|n| n.result.clone())),
            StoredState::Cancelled => (State::Cancelled, None),
            _ => (State::Dead, texts.and_then(|n| n.error.clone())),
        };
        self.effects
            .told_mut()
            .endings
            .push(Ending { id, end: Some(end) });
    }

    /// Reports the removal of this message to the clients that wait for it.
    pub(super) fn publish_removed(&mut self, seq: Seq) {
        if self.watched.is_empty() {
            return;
        }
        if let Some(message) = self.store.get(seq) {
            let id = self.id_of(seq, message).to_box();
            if self.watched.remove(&id) {
                self.effects
                    .told_mut()
                    .endings
                    .push(Ending { id, end: None });
            }
        }
    }
}
