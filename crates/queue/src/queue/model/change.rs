//! Model of CANCEL, RESCHEDULE, UPDATE, REDRIVE, PURGE, PAUSE, RESUME, GROUPSET and
//! ALTER.

use std::borrow::Cow;

use super::Model;
use crate::message::state::{Reason, State, StoredState};
use crate::op::{Done, DueTime, FindAct, GroupChanges, Redrive, Removal};
use crate::settings::{Changes, OnDead};
use crate::{Error, Millis, Seq, NEVER};

impl Model {
    pub(super) fn cancel(&mut self, id: &[u8]) -> Option<State> {
        let m = self.find(id)?;
        let (seq, state) = (m.seq, self.state_of(m));
        if !m.is_settled() {
            self.totals.cancellations += 1;
            self.unhold(seq);
            self.msg_mut(seq).reason = None;
            self.end(seq, StoredState::Cancelled);
            self.line_up(self.ticket);
        }
        Some(state)
    }

    /// Ends the hold of a dead message, when it is redriven, replaced, cancelled or
    /// purged.
    pub(super) fn unhold(&mut self, seq: Seq) {
        for group in &mut self.groups {
            group.held_by.retain(|held| *held != seq);
        }
    }

    pub(super) fn reschedule(&mut self, id: &[u8], due: DueTime) -> bool {
        let now = self.now;
        let Some(seq) = self.find_pending(id) else {
            return false;
        };
        let m = self.msg_mut(seq);
        m.due_at = due.from(now);
        m.score_base = m.due_at;
        m.ttl_base = m.due_at;
        m.is_point = due == DueTime::At(m.due_at);
        if m.parked_at.is_none() {
            m.due = m.due_at;
        }
        m.stored = match m.due > now {
            _ if m.stored == StoredState::Held => StoredState::Held,
            false => StoredState::Due,
            true if m.has_failed() => StoredState::Retry,
            true => StoredState::Delayed,
        };
        true
    }

    pub(super) fn update(&mut self, id: &[u8], payload: &[u8]) -> Result<bool, Error> {
        let Some(seq) = self.find_pending(id) else {
            return Ok(false);
        };
        let before = self.msg(seq).payload.len();
        let bytes = self.live().1 - before as u64 + payload.len() as u64;
        let limit = self.settings.max_bytes;
        if limit > 0 && bytes > limit && payload.len() > before {
            return Err(Error::FullBytes { limit });
        }
        self.msg_mut(seq).payload = payload.to_vec();
        Ok(true)
    }

    fn find_pending(&self, id: &[u8]) -> Option<Seq> {
        let found = self.find(id).filter(|m| m.stored.is_pending());
        found.map(|m| m.seq)
    }

    pub(super) fn redrive(&mut self, which: &Redrive) -> u64 {
        let dead = self.msgs.iter().filter(|m| m.stored == StoredState::Dead);
        let mut dead: Vec<_> = dead.map(|m| (m.ended_at, m.seq)).collect();
        dead.sort_unstable();
        match which {
            Redrive::Oldest(n) => dead.truncate(*n as usize),
            Redrive::Ids(ids) => dead.retain(|(_, seq)| {
                let id = &self.msg(*seq).id;
                ids.iter().any(|wanted| **wanted == **id)
            }),
        }
        let now = self.now;
        for (_, seq) in &dead {
            self.unhold(*seq);
            let m = self.msg_mut(*seq);
            m.stored = StoredState::Due;
            m.due = now;
            m.due_at = now;
            m.ttl_base = now;
            m.is_point = false;
            m.attempt = 0;
            m.failures = 0;
            m.timeouts = 0;
            m.snoozed = false;
            m.choices.change_rare(|rare| rare.expire_at = None);
            m.ended_at = NEVER;
            m.reason = None;
        }
        self.totals.redriven += dead.len() as u64;
        dead.len() as u64
    }

    pub(super) fn purge(&mut self, state: Option<State>, group: Option<&[u8]>) -> u64 {
        let number = group.map(|name| self.groups.iter().position(|g| g.name == name));
        let goes = |m: &&super::Msg| {
            state.is_none_or(|state| self.state_of(m) == state)
                && number.is_none_or(|number| number.is_some() && m.group == number)
        };
        let doomed: Vec<Seq> = self.msgs.iter().filter(goes).map(|m| m.seq).collect();
        for seq in &doomed {
            self.unhold(*seq);
        }
        self.msgs.retain(|m| !doomed.contains(&m.seq));
        self.withdraw_purged();
        if state.is_none() {
            // This also ends the holds of dead messages that were pruned.
            for (at, group) in self.groups.iter_mut().enumerate() {
                if number.is_none_or(|number| number == Some(at)) {
                    group.held_by.clear();
                }
            }
        }
        if state.is_none() && group.is_none() {
            self.ended_ids.clear();
            self.dedup_ids.clear();
        }
        doomed.len() as u64
    }

    pub(super) fn find_do(&mut self, act: FindAct, seqs: &[Seq]) -> u64 {
        let ids: Vec<Vec<u8>> = self
            .msgs
            .iter()
            .filter(|m| seqs.contains(&m.seq))
            .map(|m| m.id.clone())
            .collect();
        match act {
            FindAct::Redrive => {
                let ids = ids.into_iter().map(Cow::Owned);
                self.redrive(&Redrive::Ids(ids.collect()))
            }
            FindAct::Cancel => {
                let mut count = 0;
                for seq in seqs {
                    let id = self
                        .msgs
                        .iter()
                        .find(|m| m.seq == *seq)
                        .map(|m| m.id.clone());
                    let before = id.and_then(|id| self.cancel(&id));
                    let had_ended = [Some(State::Finished), Some(State::Cancelled), None];
                    count += u64::from(!had_ended.contains(&before));
                }
                count
            }
            FindAct::Purge => {
                ids.iter().for_each(|id| {
                    let seq = self.find(id).map(|m| m.seq);
                    seq.into_iter().for_each(|seq| self.unhold(seq));
                });
                self.msgs.retain(|m| !seqs.contains(&m.seq));
                self.withdraw_purged();
                ids.len() as u64
            }
        }
    }

    pub(super) fn remove(&mut self, removal: &Removal) -> u64 {
        let before = self.msgs.len();
        match removal {
            Removal::Messages(seqs) => {
                self.msgs.retain(|m| !seqs.contains(&m.seq));
                seqs.iter().for_each(|seq| self.unhold(*seq));
            }
            Removal::Holds(names) => {
                let named = self.groups.iter_mut();
                let named = named.filter(|g| names.iter().any(|name| **name == *g.name));
                named.for_each(|g| g.held_by.clear());
            }
            Removal::TakenIds => {
                self.ended_ids.clear();
                self.dedup_ids.clear();
            }
        }
        self.withdraw_purged();
        (before - self.msgs.len()) as u64
    }

    pub(super) fn pause(&mut self, group: Option<&[u8]>, ms: Option<Millis>) -> Done {
        let until = ms.map_or(NEVER, |ms| self.now + ms);
        match group {
            None => self.paused_until = Some(until),
            Some(name) => {
                let number = self.group_number(name);
                self.groups[number].paused_until = Some(until);
            }
        }
        Done::Ok
    }

    pub(super) fn resume(&mut self, group: Option<&[u8]>) -> Done {
        match group {
            None => {
                self.paused_until = None;
                self.close_breaker(None);
            }
            Some(name) => {
                let number = self.group_number(name);
                self.close_breaker(Some(number));
                self.groups[number].paused_until = None;
                self.groups[number].held_by.clear();
            }
        }
        Done::Ok
    }

    pub(super) fn group_set(&mut self, name: &[u8], changes: &GroupChanges) -> Done {
        let number = self.group_number(name);
        let group = &mut self.groups[number];
        group.weight = changes.weight.unwrap_or(group.weight);
        group.concurrency = changes.concurrency.unwrap_or(group.concurrency);
        group.rate = changes.rate.unwrap_or(group.rate);
        if group.rate.is_none() {
            group.given.clear();
        }
        Done::Ok
    }

    pub(super) fn alter(&mut self, changes: &Changes) -> Done {
        let (now, dedup) = (self.now, self.settings.dedup);
        self.ended_ids.retain(|(_, at)| at + dedup > now);
        self.settings = self.settings.with(changes);
        if self.settings.rate.is_none() {
            self.given.clear();
        }
        if self.settings.breaker.is_none() {
            self.breakers.clear();
        }
        if self.settings.on_dead == OnDead::Continue {
            self.groups.iter_mut().for_each(|g| g.held_by.clear());
        }
        let over = |m: &&super::Msg| {
            m.stored.is_pending() && self.expiry(m.seq).is_some_and(|at| at <= now)
        };
        let expired = self.msgs.iter().filter(over);
        let mut expired: Vec<_> = expired.map(|m| (self.expiry(m.seq), m.seq)).collect();
        expired.sort_unstable();
        for (_, seq) in expired {
            self.die(seq, Reason::Expired);
            self.line_up(self.ticket);
        }
        Done::Ok
    }
}
