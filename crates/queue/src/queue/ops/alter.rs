//! ALTER: other options for a queue and its content.

use crate::collections::rare::Rare;
use crate::message::state::StoredState;
use crate::op::Done;
use crate::queue::stuck::Last;
use crate::queue::Queue;
use crate::settings::{Changes, OnDead};
use crate::{GroupIx, Millis, Seq};

impl Queue {
    /// Changes options, also for messages already in the queue. O(1), except for
    /// TTL, ONRETRY, ONDEAD, GROUPCONCURRENCY and BREAKER, which cost O(log n) for each
    /// message or group concerned.
    pub(in crate::queue) fn alter(&mut self, changes: &Changes, now: Millis) -> Done {
        let settings = self.state.settings.with(changes);
        // Messages that have already expired die as of their own expiry. Messages
        // that expire only because of the shorter TTL die now, since they were
        // alive until now.
        self.expire_until(now, None);
        let before = std::mem::replace(&mut self.state.settings, settings.shared());
        self.attach(changes);
        let compress = self.state.settings.compress;
        self.state.store.set_packing(compress);
        if before.ttl != self.state.settings.ttl {
            self.index_expiries();
            self.expire_until(now, Some(now));
        }
        if before.dedup != self.state.settings.dedup {
            // Ids that the old DEDUP has freed must stay free under a longer DEDUP.
            self.state.records.dedup.forget_all(now, before.dedup);
        }
        if before.rate.is_some() && self.state.settings.rate.is_none() {
            self.state.seldom.window.clear();
        }
        if before.on_dead == OnDead::Block && self.state.settings.on_dead == OnDead::Continue {
            let held: Vec<GroupIx> = self.state.groups.held_from(0).collect();
            for ix in held {
                self.end_holds(ix);
            }
        }
        self.alter_breakers(before.breaker, now);
        self.alter_fair(before.fair);
        if before.on_dead != self.state.settings.on_dead
            || before.on_retry != self.state.settings.on_retry
            || before.group_concurrency != self.state.settings.group_concurrency
        {
            let mut groups = self.state.groups.all();
            self.put_in_order(&mut groups);
            for ix in groups {
                self.refresh(ix, now, self.join(now));
            }
        }
        // Retention may have become shorter, so the queue must check for due events.
        self.wake_by(now);
        self.changed();
        self.finish_manually();
        Done::Ok
    }

    /// Moves messages that have expired by `now` to dead, as of `at`, or as of
    /// their own expiry if `at` is `None`.
    fn expire_until(&mut self, now: Millis, at: Option<Millis>) {
        let mut last = Last::none();
        loop {
            let Some(((expiry, seq), ())) = self.indexes.expiring.first() else {
                return;
            };
            if expiry > now {
                return;
            }
            if last.is_again(seq) {
                return self.note_stuck("a message that has expired");
            }
            let by = at.map(|at| self.join(at));
            self.expire_next(at.unwrap_or(expiry), by);
        }
    }

    /// Rebuilds the index of expiries, for example after TTL was changed. O(n log
    /// n).
    pub(in crate::queue) fn index_expiries(&mut self) {
        let mut expiries: Vec<(Millis, Seq)> = Vec::new();
        for stored in [StoredState::Delayed, StoredState::Due, StoredState::Retry] {
            for index in self.indexes.waiting.indexes(stored) {
                for ((_, seq), ()) in index.iter() {
                    if let Some(at) = self.state.store.get(seq).and_then(|m| self.expiry(m)) {
                        expiries.push((at, seq));
                    }
                }
            }
        }
        for seq in self.held() {
            if let Some(at) = self.state.store.get(seq).and_then(|m| self.expiry(m)) {
                expiries.push((at, seq));
            }
        }
        expiries.sort_unstable();
        if let Some((first, _)) = expiries.first() {
            self.wake_by(*first);
        }
        let is_unused = expiries.is_empty();
        let expiring = crate::TimeIndex::from_sorted(expiries.into_iter().map(|k| (k, ())));
        self.indexes.expiring = Rare::unless(is_unused, expiring);
    }
}
