//! Commands of operators and producers that change messages, groups or the queue:
//! CANCEL, RESCHEDULE, UPDATE, PAUSE, RESUME, GROUPSET and ALTER.

use std::borrow::Cow;

use super::Queue;
use crate::error::Error;
use crate::group::{Group, GroupIx};
use crate::history::History;
use crate::line::Join;
use crate::message::Message;
use crate::op::{Done, DueTime, GroupChanges, Happened};
use crate::settings::{Changes, OnDead};
use crate::state::{Place, State};
use crate::{Millis, Seq, MAX_EXACT, NEVER};

impl Queue {
    /// The state of a message at `now`. It counts everything that is due by then,
    /// processed or not.
    pub fn state_of(&self, message: &Message, now: Millis) -> State {
        let ready = || match self.groups.get(message.group) {
            Some(group) if self.group_head(group, now).is_none() => State::Blocked,
            _ => State::Ready,
        };
        match message.place {
            place if place.is_pending() && self.expired_at(message, now).is_some() => State::Dead,
            Place::Due => ready(),
            Place::Delayed | Place::Retry if message.due <= now => ready(),
            Place::Delayed => State::Delayed,
            Place::Retry => State::Retry,
            Place::Running => State::Running,
            Place::Finished => State::Finished,
            Place::Dead => State::Dead,
            Place::Cancelled => State::Cancelled,
        }
    }

    /// Cancels messages. Returns the state in which each was before, or `None`
    /// where there is no such message.
    pub(super) fn cancel(&mut self, ids: &[Cow<[u8]>], now: Millis) -> Done {
        let states = ids.iter().map(|id| self.cancel_one(id, now)).collect();
        Done::States(states)
    }

    fn cancel_one(&mut self, id: &[u8], now: Millis) -> Option<State> {
        let seq = self.find_settled(id, now)?;
        let message = self.store.get(seq)?;
        let state = self.state_of(message, now);
        let (group, size) = (message.group, message.payload_len());
        match state {
            State::Finished | State::Cancelled => return Some(state),
            State::Running => {
                self.unlease(seq);
                self.bytes -= size;
            }
            State::Dead => {
                self.leave_record(seq);
                self.unhold(seq, group);
            }
            State::Delayed | State::Ready | State::Blocked | State::Retry => {
                self.leave_pending(seq);
                self.bytes -= size;
            }
        }
        self.totals.cancellations += 1;
        self.changed();
        self.effects.happened.add(Happened::CANCELLED);
        self.end(seq, Place::Cancelled, now);
        self.refresh(group, now, self.join(now));
        Some(state)
    }

    /// Finds a message by id after processing what is due for it at `now`: an
    /// expired message dies, a redriven one becomes pending, and a record past its
    /// retention is removed.
    pub(super) fn find_settled(&mut self, id: &[u8], now: Millis) -> Option<Seq> {
        let seq = self.find(id)?;
        if self.prune_if_over(seq, now) {
            return None;
        }
        // A redriven message may have expired since, so redrive first.
        self.redrive_if_due(seq);
        // Read the group first: if few records are kept, the message may be gone
        // after it expires.
        let group = self.store.get(seq)?.group;
        if let Some(at) = self.expire_if_over(seq, now) {
            self.refresh(group, at, Join::by_time(at));
        }
        Some(seq)
    }

    /// Sets the due time of a pending message. Returns whether there was such a
    /// message.
    pub(super) fn reschedule(&mut self, id: &[u8], due: DueTime, now: Millis) -> Done {
        let Some((seq, group)) = self.find_pending(id, now) else {
            return Done::Flag(false);
        };
        self.leave_pending(seq);
        let due = due.from(now);
        if let Some(message) = self.store.get_mut(seq) {
            message.due = due;
            if let History::Full(ext) = &mut message.history {
                ext.due_at = due;
                ext.score_base = due;
                ext.ttl_base = due;
            }
        }
        self.enter_pending(seq, now);
        self.refresh(group, now, self.join(now));
        self.changed();
        Done::Flag(true)
    }

    /// Replaces the payload of a pending message. Returns whether there was such a
    /// message.
    ///
    /// Errors: MAXBYTES does not allow the new size.
    pub(super) fn update(&mut self, id: &[u8], payload: &[u8], now: Millis) -> Result<Done, Error> {
        let after = payload.len() as u64;
        self.check_update(id, after)?;
        let Some((seq, group)) = self.find_pending(id, now) else {
            return Ok(Done::Flag(false));
        };
        let before = self.store.get(seq).map_or(0, Message::payload_len);
        let bytes = self.bytes.saturating_sub(before).saturating_add(after);
        if let Some(message) = self.store.get(seq) {
            let place = message.place;
            let waiter = super::place::waiter(seq, message);
            self.heed_purges(group);
            self.waiting.resize(place, waiter, after);
            let counted = self.groups.with(group, |group| {
                group.backlog.resize(place, before, after);
                group.counted
            });
            if counted == Some(true) && place == Place::Due {
                let ready = self.grouped_ready_bytes + after;
                self.grouped_ready_bytes = ready.saturating_sub(before);
            }
        }
        self.store.set_payload(seq, payload);
        self.bytes = bytes;
        self.changed();
        Ok(Done::Flag(true))
    }

    /// Checks that MAXBYTES allows the message with this id, if it is pending, a
    /// payload of `after` bytes. Changes nothing.
    fn check_update(&self, id: &[u8], after: u64) -> Result<(), Error> {
        let found = self.find(id);
        let found = found.and_then(|seq| Some((seq, self.store.get(seq)?)));
        match found {
            Some((seq, message))
                if message.place.is_pending() || self.redriving.has(seq, message) =>
            {
                self.check_bytes(Some(message), after)
            }
            _ => Ok(()),
        }
    }

    fn find_pending(&mut self, id: &[u8], now: Millis) -> Option<(Seq, GroupIx)> {
        let seq = self.find_settled(id, now)?;
        let message = self.store.get(seq)?;
        message.place.is_pending().then_some((seq, message.group))
    }

    /// Pauses deliveries of the queue or of a group, for `ms` or without end.
    pub(super) fn pause(&mut self, group: Option<&[u8]>, ms: Option<Millis>, now: Millis) -> Done {
        let until = ms.map_or(NEVER, |ms| now.saturating_add(ms).min(MAX_EXACT));
        match group {
            None => self.paused_until = Some(until),
            Some(name) => {
                let ix = self.group_to_set(name);
                if let Some(group) = self.groups.get_mut(ix) {
                    group.ext_mut().paused_until = Some(until);
                }
                self.refresh(ix, now, self.join(now));
            }
        }
        self.note(until);
        self.changed();
        Done::Ok
    }

    /// The group with this name, created if it does not exist. A group that a purge
    /// has emptied is removed first and created anew.
    fn group_to_set(&mut self, name: &[u8]) -> GroupIx {
        if let Some(ix) = self.groups.find(name) {
            self.heed_purges(ix);
        }
        self.groups.find_or_add(name)
    }

    /// Ends a pause. For a group, also ends the holds of dead messages.
    pub(super) fn resume(&mut self, group: Option<&[u8]>, now: Millis) -> Done {
        match group {
            None => {
                if self.paused_until.take().is_some() {
                    self.changed();
                }
            }
            Some(name) => {
                if let Some(ix) = self.groups.find(name) {
                    self.heed_purges(ix);
                    let group = self.groups.get_mut(ix);
                    let ext = group.and_then(Group::ext_if_any);
                    let paused = ext.is_some_and(|ext| ext.paused_until.take().is_some());
                    if self.end_holds(ix) || paused {
                        self.refresh(ix, now, self.join(now));
                        self.changed();
                    }
                }
            }
        }
        Done::Ok
    }

    /// Changes the settings of a group.
    pub(super) fn set_group(&mut self, name: &[u8], changes: &GroupChanges, now: Millis) -> Done {
        let ix = self.group_to_set(name);
        if let Some(group) = self.groups.get_mut(ix) {
            let ext = group.ext_mut();
            let mut settings = ext.settings.take().unwrap_or_default();
            settings.weight = match changes.weight {
                // 0 stands for the default weight, so that a group with default
                // settings need not be remembered.
                Some(1) => 0,
                weight => weight.unwrap_or(settings.weight),
            };
            settings.concurrency = changes.concurrency.unwrap_or(settings.concurrency);
            if let Some(rate) = changes.rate {
                settings.rate = rate;
                if rate.is_none() {
                    settings.window.clear();
                }
            }
            if *settings != Default::default() {
                ext.settings = Some(settings);
            }
        }
        self.refresh(ix, now, self.join(now));
        self.changed();
        Done::Ok
    }

    /// Changes options, also for messages already in the queue. O(1), except for
    /// TTL, ONRETRY, ONDEAD and GROUPCONCURRENCY, which cost O(log n) for each
    /// message or group concerned.
    pub(super) fn alter(&mut self, changes: &Changes, now: Millis) -> Done {
        let settings = self.settings.with(changes);
        // Messages that have already expired die as of their own expiry. Messages
        // that expire only because of the shorter TTL die now, since they were
        // alive until now.
        self.expire_until(now, None);
        self.heed_all();
        let before = std::mem::replace(&mut self.settings, settings);
        if before.ttl != self.settings.ttl {
            self.index_expiries();
            self.expire_until(now, Some(now));
        }
        if before.dedup != self.settings.dedup {
            // Ids that the old DEDUP has freed must stay free under a longer one.
            self.records.dedup.forget_all(now, before.dedup);
        }
        if before.rate.is_some() && self.settings.rate.is_none() {
            self.window.clear();
        }
        if before.on_dead == OnDead::Block && self.settings.on_dead == OnDead::Continue {
            let held: Vec<GroupIx> = self.groups.held().collect();
            for ix in held {
                self.end_holds(ix);
            }
        }
        if before.on_dead != self.settings.on_dead
            || before.on_retry != self.settings.on_retry
            || before.group_concurrency != self.settings.group_concurrency
        {
            for ix in self.groups.all() {
                self.refresh(ix, now, self.join(now));
            }
        }
        // Retention may have become shorter, so look for due events.
        self.note(now);
        self.changed();
        self.finish_manually();
        Done::Ok
    }

    /// Moves messages that have expired by `now` to dead, as of `at`, or as of
    /// their own expiry if `at` is `None`.
    fn expire_until(&mut self, now: Millis, at: Option<Millis>) {
        loop {
            self.drop_purged_heads(now);
            let Some(((expiry, _), ())) = self.expiring.first() else {
                return;
            };
            if expiry > now {
                return;
            }
            let join = match at {
                Some(at) => self.join(at),
                None => Join {
                    time: expiry,
                    ticket: 0,
                },
            };
            self.expire_next(at.unwrap_or(expiry), join);
        }
    }

    /// Rebuilds the index of expiries, for example after TTL was changed. O(n log
    /// n).
    pub(super) fn index_expiries(&mut self) {
        // Free purged messages first, so that they do not get back into an index.
        self.sweep(usize::MAX);
        let mut expiries: Vec<(Millis, Seq)> = Vec::new();
        for place in [Place::Delayed, Place::Due, Place::Retry] {
            for index in self.waiting.indexes(place) {
                for ((_, seq), ()) in index.iter() {
                    if let Some(at) = self.store.get(seq).and_then(|m| self.expiry(m)) {
                        expiries.push((at, seq));
                    }
                }
            }
        }
        expiries.sort_unstable();
        if let Some((first, _)) = expiries.first() {
            self.note(*first);
        }
        self.expiring = crate::TimeIndex::from_sorted(expiries.into_iter().map(|k| (k, ())));
    }

    pub(super) fn changed(&mut self) {
        self.effects.changed = true;
        self.effects.visible = true;
    }
}
