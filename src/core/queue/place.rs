//! Moves a message from one place to another and keeps every index in step.

use super::super::group::{Group, GroupIx, OrderKey};
use super::super::line::{Join, LineKey};
use super::super::message::{Message, Place, Reason, State};
use super::super::op::{Ending, Happened};
use super::super::ordered::MinTime;
use super::super::settings::{OnDead, OnRetry};
use super::super::waiting::Waiter;
use super::super::{Millis, Receipt, Seq, MAX_EXACT, NEVER};
use super::Queue;

/// A message as what waits knows it.
pub(super) fn waiter(seq: Seq, message: &Message) -> Waiter {
    Waiter {
        seq,
        due: message.due,
        priority: message.priority,
        grouped: message.group.is_some(),
        size: message.payload().len() as u64,
    }
}

/// The place of a message in the order of its group.
pub(super) fn order_key(seq: Seq, message: &Message) -> OrderKey {
    OrderKey::new(message.priority, message.score(), seq)
}

impl Queue {
    /// When a pending message expires, if it does.
    pub(super) fn expiry(&self, message: &Message) -> Option<Millis> {
        let own = message.choices().and_then(|choices| choices.ttl);
        match own.unwrap_or(self.settings.ttl) {
            0 => None,
            ttl => {
                let base = message.ext.as_ref().map_or(message.due, |ext| ext.ttl_base);
                Some(base.saturating_add(ttl).min(MAX_EXACT))
            }
        }
    }

    /// Lets a message wait: for its due time, or, when that has come, for a
    /// consumer. The caller refreshes its group.
    pub(super) fn enter_pending(&mut self, seq: Seq, now: Millis) {
        let Some(message) = self.store.get_mut(seq) else {
            return;
        };
        let failed = message.failures() > 0;
        let place = match (message.due <= now, failed) {
            (true, _) => Place::Due,
            (false, true) => Place::Retry,
            (false, false) => Place::Delayed,
        };
        message.place = place;
        let (due, group) = (message.due, message.group);
        let key = order_key(seq, message);
        let waiter = waiter(seq, message);
        let size = waiter.size;
        self.waiting.insert(place, waiter);
        if let Some(at) = self.store.get(seq).and_then(|m| self.expiry(m)) {
            self.expiring.insert((at, seq), ());
            self.note(at);
        }
        if let Some(group) = self.groups.get_mut(group) {
            let order = if failed {
                &mut group.failed
            } else {
                &mut group.order
            };
            order.insert(key, MinTime(due));
            group.due += u64::from(place == Place::Due);
            group.retrying += u64::from(place == Place::Retry);
            group.bytes += size;
        }
        match place {
            Place::Due if !group.is_some() => self.effects.happened.add(Happened::READY),
            Place::Due => {}
            _ => self.note(due),
        }
    }

    /// Takes a message out of what waits. The caller puts it elsewhere and
    /// refreshes its group.
    pub(super) fn leave_pending(&mut self, seq: Seq) {
        let Some(message) = self.store.get(seq) else {
            return;
        };
        let (place, group, failed) = (message.place, message.group, message.failures() > 0);
        let key = order_key(seq, message);
        let waiter = waiter(seq, message);
        if let Some(at) = self.expiry(message) {
            self.expiring.remove(&(at, seq));
        }
        self.waiting.remove(place, waiter);
        if let Some(group) = self.groups.get_mut(group) {
            let order = if failed {
                &mut group.failed
            } else {
                &mut group.order
            };
            order.remove(&key);
            group.due -= u64::from(place == Place::Due);
            group.retrying -= u64::from(place == Place::Retry);
            group.bytes -= waiter.size;
        }
    }

    /// A waiting message's time has come.
    pub(super) fn promote(&mut self, seq: Seq) {
        let Some(message) = self.store.get_mut(seq) else {
            return;
        };
        let from = std::mem::replace(&mut message.place, Place::Due);
        let (group, waiter) = (message.group, waiter(seq, message));
        self.waiting.remove(from, waiter);
        self.waiting.insert(Place::Due, waiter);
        match self.groups.get_mut(group) {
            Some(group) => {
                group.due += 1;
                group.retrying -= u64::from(from == Place::Retry);
            }
            None => self.effects.happened.add(Happened::READY),
        }
    }

    /// Ends the lease of a message; its place is then for the caller to give.
    pub(super) fn unlease(&mut self, seq: Seq) {
        let Some(message) = self.store.get_mut(seq) else {
            return;
        };
        let group = message.group;
        let Some(ext) = message.ext.as_mut() else {
            return;
        };
        let (receipt, batch, until) = (ext.receipt, ext.batch, ext.lease_until);
        let consumer = ext.consumer;
        ext.receipt = 0;
        ext.batch = 0;
        ext.lease_until = NEVER;
        self.leases.remove(receipt, until);
        self.consumers.release(consumer);
        if group.is_some() {
            let batch_ended = self.leases.leave_batch(batch);
            if let Some(group) = self.groups.get_mut(group) {
                group.running -= 1;
                group.batches -= u64::from(batch_ended);
            }
        }
    }

    /// The messages of a batch that were delivered after this one and still
    /// run, with their receipts.
    pub(super) fn later_of_batch(&self, seq: Seq) -> Vec<Seq> {
        let Some(ext) = self.store.get(seq).and_then(|m| m.ext.as_ref()) else {
            return Vec::new();
        };
        let Some(batch) = self.leases.batch(ext.batch) else {
            return Vec::new();
        };
        let first: Receipt = ext.batch;
        (ext.receipt + 1..first + batch.len)
            .filter_map(|receipt| self.leases.find(receipt))
            .collect()
    }

    /// Brings a group's place in the line up to date with what it can give.
    /// Call it after every change to what it has, holds or may.
    pub(super) fn refresh(&mut self, ix: GroupIx, now: Millis, join: Join) {
        if !ix.is_some() {
            return self.refresh_plain(now, join);
        }
        let Some(group) = self.groups.get(ix) else {
            return;
        };
        let head = self.group_head(group, now);
        let had = group.line;
        let has = head.map(|head| {
            let joined = LineKey {
                priority: head.priority(),
                join,
                seq: head.seq(),
                group: ix,
            };
            match had {
                Some(key) if key.priority == joined.priority && key.join != join => key,
                _ => joined,
            }
        });
        let ready = if has.is_some() { group.due } else { 0 };
        let wake = self.group_wake(group, now);
        if let Some(group) = self.groups.get_mut(ix) {
            self.grouped_ready = (self.grouped_ready + ready).saturating_sub(group.ready);
            if ready > group.ready {
                self.effects.happened.add(Happened::READY);
            }
            group.ready = ready;
            if had.map(|key| key.priority) != has.map(|key| key.priority) {
                group.turn = 0;
            }
            group.line = has;
        }
        if had != has {
            if let Some(key) = had {
                self.line.remove(&key);
            }
            if let Some(key) = has {
                self.line.insert(key, ());
            }
        }
        self.groups.wake_at(ix, wake);
        if let Some(at) = wake {
            self.note(at);
        }
        self.groups.settle(ix);
    }

    fn refresh_plain(&mut self, now: Millis, join: Join) {
        self.plain_line = self.waiting.plain_head(now).map(|(priority, _, seq)| {
            let joined = LineKey {
                priority,
                join,
                seq,
                group: GroupIx::NONE,
            };
            match self.plain_line {
                Some(key) if key.priority == priority && key.join != join => key,
                _ => joined,
            }
        });
    }

    /// What a group would give next at `now`, if it can give anything.
    pub(super) fn group_head(&self, group: &Group, now: Millis) -> Option<OrderKey> {
        if group.is_paused(now)
            || self.is_held_by_dead(group)
            || group.batches >= self.concurrency(group)
            || group.allowance(now) == 0
        {
            return None;
        }
        self.next_in_group(group, now)
    }

    /// What comes next in the order of a group at `now`, limits aside.
    pub(super) fn next_in_group(&self, group: &Group, now: Millis) -> Option<OrderKey> {
        let fresh = || group.order.first_at_most(now).map(|(key, _)| key);
        if group.failed.is_empty() {
            return fresh();
        }
        match self.settings.on_retry {
            OnRetry::Block if group.retrying > 0 => None,
            OnRetry::Block => group.failed.first().map(|(key, _)| key),
            OnRetry::Skip => {
                let failed = group.failed.first_at_most(now).map(|(key, _)| key);
                match (failed, fresh()) {
                    (Some(a), Some(b)) => Some(a.min(b)),
                    (a, b) => a.or(b),
                }
            }
        }
    }

    /// Whether a dead message holds a group.
    pub(super) fn is_held_by_dead(&self, group: &Group) -> bool {
        self.settings.on_dead == OnDead::Block && !group.held_by.is_empty()
    }

    /// Batches of a group that may be leased at once.
    pub(super) fn concurrency(&self, group: &Group) -> u64 {
        match group.settings.as_ref().map_or(0, |s| s.concurrency) {
            0 => self.settings.group_concurrency,
            own => own,
        }
    }

    /// When a group's pause or limit ends, if that is what it waits for.
    fn group_wake(&self, group: &Group, now: Millis) -> Option<Millis> {
        if let Some(until) = group.paused_until {
            return Some(until);
        }
        let (rate, window) = group.rate()?;
        let next = window.next_free(rate, now);
        (next > now && group.pending() > 0).then_some(next)
    }

    /// A message that neither waits nor runs any longer has ended.
    pub(super) fn end(&mut self, seq: Seq, place: Place, now: Millis) {
        self.tell_end(seq, place);
        if place != Place::Dead && self.settings.retain == 0 {
            if let Some(message) = self.store.get_mut(seq) {
                message.place = place;
                if self.settings.dedup > 0 {
                    let id = self.ids.of(seq, message).to_box();
                    self.records.dedup.remember(&id, now);
                    self.wake = self.wake.min(now.saturating_add(self.settings.dedup));
                }
            }
            self.forget(seq);
            return;
        }
        self.store.with(seq, |message| {
            message.place = place;
            message.ext_mut().ended_at = now;
        });
        if let Some(index) = self.records.at_mut(place) {
            index.insert((now, seq), ());
        }
        let kept = match place {
            Place::Dead => self.settings.dead_retain,
            _ => self.settings.retain,
        };
        if kept > 0 {
            self.note(now.saturating_add(kept));
        }
        if self.over_count(place) {
            self.prune_oldest(place);
        }
    }

    /// Whether more records like this one are kept than may be.
    pub(super) fn over_count(&self, place: Place) -> bool {
        match place {
            Place::Dead => {
                let most = self.settings.dead_count;
                most > 0 && self.records.dead.len() as u64 > most
            }
            _ => {
                let most = self.settings.retain_count;
                most > 0 && self.records.settled() > most
            }
        }
    }

    /// Removes the oldest record like this one.
    pub(super) fn prune_oldest(&mut self, place: Place) {
        let oldest = match place {
            Place::Dead => self.records.oldest_dead(),
            _ => self.records.oldest_settled(),
        };
        if let Some((ended_at, seq)) = oldest {
            if self.settings.dedup > 0 && place != Place::Dead {
                if let Some(message) = self.store.get(seq) {
                    let id = self.ids.of(seq, message).to_box();
                    self.records.dedup.remember(&id, ended_at);
                    self.wake = self.wake.min(ended_at.saturating_add(self.settings.dedup));
                }
            }
            self.drop_record(seq);
        }
    }

    /// Removes a record, whatever it is of.
    pub(super) fn drop_record(&mut self, seq: Seq) {
        let Some(message) = self.store.get(seq) else {
            return;
        };
        let (place, ended_at) = (message.place, message.ended_at());
        if let Some(index) = self.records.at_mut(place) {
            index.remove(&(ended_at, seq));
        }
        self.forget(seq);
    }

    /// Removes a message that stands in no index any longer.
    pub(super) fn forget(&mut self, seq: Seq) -> Option<Message> {
        self.ids.remove(&self.store, seq);
        let mut message = self.store.remove(seq)?;
        if let Some(ext) = message.ext.take() {
            self.consumers.unmention(ext.consumer);
            self.spare.keep(ext);
        }
        if let Some(group) = self.groups.get_mut(message.group) {
            group.members -= 1;
            self.groups.settle(message.group);
        }
        Some(message)
    }

    /// A message that neither waits nor runs any longer dies.
    pub(super) fn die(&mut self, seq: Seq, reason: Reason, now: Millis) {
        self.totals.deaths += 1;
        self.totals.expired += u64::from(reason == Reason::Expired);
        self.effects.happened.add(Happened::DEAD);
        let group = self.store.with(seq, |message| {
            message.ext_mut().notes_mut().reason = Some(reason);
            (message.group, message.payload().len() as u64)
        });
        let Some((group, bytes)) = group else {
            return;
        };
        self.bytes -= bytes;
        if self.settings.on_dead == OnDead::Block && group.is_some() {
            if let Some(id) = self.store.get(seq).map(|m| self.ids.of(seq, m).to_box()) {
                if let Some(group) = self.groups.get_mut(group) {
                    group.held_by.push((seq, id));
                }
            }
        }
        self.end(seq, Place::Dead, now);
    }

    /// A dead message no longer holds its group.
    pub(super) fn unhold(&mut self, seq: Seq, group: GroupIx) {
        if let Some(group) = self.groups.get_mut(group) {
            group.held_by.retain(|(held, _)| *held != seq);
        }
    }

    /// Tells those who wait for this message how it ends.
    fn tell_end(&mut self, seq: Seq, place: Place) {
        if self.watched.is_empty() {
            return;
        }
        let Some(message) = self.store.get(seq) else {
            return;
        };
        let id = self.ids.of(seq, message).to_box();
        if !self.watched.remove(&id) {
            return;
        }
        let notes = message.notes();
        let end = match place {
            Place::Finished => (State::Finished, notes.and_then(|n| n.result.clone())),
            Place::Cancelled => (State::Cancelled, None),
            _ => (State::Dead, notes.and_then(|n| n.error.clone())),
        };
        self.effects.endings.push(Ending { id, end: Some(end) });
    }

    /// Tells those who wait for this message that it is no more.
    pub(super) fn tell_removed(&mut self, seq: Seq) {
        if self.watched.is_empty() {
            return;
        }
        if let Some(message) = self.store.get(seq) {
            let id = self.ids.of(seq, message).to_box();
            if self.watched.remove(&id) {
                self.effects.endings.push(Ending { id, end: None });
            }
        }
    }
}
