//! Model of SEND, and of ids.

use super::batches::batch_of;
use super::{Model, Msg};
use crate::message::after::Counts;
use crate::message::id::generated;
use crate::message::state::{Reason, StoredState};
use crate::message::Choices;
use crate::op::{AckSend, Done, DueTime, Send, Sent};
use crate::{Error, Millis, Seq, NEVER};

impl Model {
    /// Acks and sends, or does nothing if the command is refused.
    pub(super) fn ack_send(&mut self, op: &AckSend) -> Result<Done, Error> {
        if op.receipt.is_some_and(|r| self.running(r).is_none()) {
            return Ok(Done::AckSent(None));
        }
        let mut after = self.clone();
        let before = self.live();
        if let Some(receipt) = op.receipt {
            let acked = after.running(receipt).unwrap();
            after.kept_open = batch_of(&acked.choices).map(<[u8]>::to_vec);
            after.ack(&[receipt]);
            after.line_up(after.ticket);
            after.send_reruns(after.ticket);
        }
        let mut all = smallvec::SmallVec::new();
        for send in &op.sends {
            if let Done::Sent(sent) = after.send(send, before)? {
                if sent[0] == Sent::NoGroup {
                    // The messages after it have ids of the new salt.
                    after.salt = send.new_salt.unwrap_or(after.salt);
                }
                all.extend(sent);
            }
            after.line_up(after.ticket);
        }
        for signal in &op.signals {
            after.ticket += 1;
            let is_there = after.signal(&signal.id, &signal.text);
            all.push(Sent::Signaled(is_there));
        }
        after.kept_open = None;
        *self = after;
        Ok(Done::AckSent(Some(all)))
    }

    /// Sends. A limit refuses only what grows beyond `before`, the numbers of
    /// messages and payload bytes before the command.
    pub(super) fn send(&mut self, send: &Send, before: (u64, u64)) -> Result<Done, Error> {
        let alive = !send.if_group || self.is_group_alive(send.group.as_deref());
        if alive && self.earlier_of(send).is_some() {
            self.totals.duplicates += 1;
            return Ok(Done::Sent([Sent::Duplicate].into_iter().collect()));
        }
        let done = self.send_first(send, before)?;
        if let (Some(dedup), Done::Sent(sent)) = (&send.dedup, &done) {
            if let Sent::Added(seq) | Sent::Waits(seq) = sent[0] {
                let made = generated(seq, self.now, self.salt).to_vec();
                let id = send.id.as_ref().map_or(made, |id| id.to_vec());
                self.dedup_ids.retain(|(name, ..)| **name != *dedup.name);
                let until = self.now + dedup.ms;
                self.dedup_ids.push((dedup.name.to_vec(), id, until));
            }
        }
        Ok(done)
    }

    /// The id of the message that this SEND repeats.
    pub fn earlier_of(&self, send: &Send) -> Option<&[u8]> {
        let dedup = send.dedup.as_ref()?;
        let mut known = self.dedup_ids.iter();
        let first = known.find(|(name, _, until)| **name == *dedup.name && *until > self.now)?;
        Some(&first.1)
    }

    /// Sends a message that is no duplicate by its deduplication id.
    fn send_first(&mut self, send: &Send, before: (u64, u64)) -> Result<Done, Error> {
        if send.if_group && !self.is_group_alive(send.group.as_deref()) {
            return Ok(Done::Sent([Sent::NoGroup].into_iter().collect()));
        }
        let mut replaced = None;
        if let Some(seq) = self.run_to_wait_for(send) {
            return self.wait_for_run(seq, send, before);
        }
        if let Some(id) = send.id.as_deref() {
            let of_id = self.find(id);
            let has_ended =
                |m: &Msg| matches!(m.stored, StoredState::Dead | StoredState::Cancelled);
            match of_id.filter(|m| !m.is_settled() || send.replace && has_ended(m)) {
                Some(m) if send.replace && has_ended(m) => replaced = Some(m.seq),
                Some(m) if send.replace && m.stored.is_pending() => replaced = Some(m.seq),
                Some(_) => return Ok(self.taken()),
                None if self.is_remembered(id) => return Ok(self.taken()),
                None => replaced = of_id.map(|m| m.seq),
            }
        }
        let gone = self.msgs.iter().find(|m| Some(m.seq) == replaced);
        let gone = gone.filter(|m| m.is_live());
        let first_sent_at = gone.map_or(self.now, |m| m.first_sent_at);
        let gone = gone.map_or((0, 0), |m| (1, m.payload.len() as u64));
        let (live, bytes) = self.live();
        let more: u64 = send.payloads.iter().map(|p| p.len() as u64).sum();
        let added = send.payloads.len() as u64;
        let (live, bytes) = (live - gone.0 + added, bytes - gone.1 + more);
        if self.settings.closed && gone.0 == 0 {
            return Err(Error::Closed);
        }
        let limit = self.settings.max_len;
        if limit > 0 && live > limit && live > before.0 {
            return Err(Error::FullLength { limit });
        }
        let limit = self.settings.max_bytes;
        if limit > 0 && bytes > limit && bytes > before.1 {
            return Err(Error::FullBytes { limit });
        }
        let waiting = replaced.filter(|_| gone.0 > 0);
        self.check_ring(&send.choices, waiting)?;
        if let Some(replaced) = replaced {
            self.msgs.retain(|m| m.seq != replaced);
            self.unhold(replaced);
            // The group is without the replaced message for a moment, and may lose its
            // position by that, or deliver a message that a dead one held.
            self.line_up(self.ticket);
        }
        Ok(self.put(send, first_sent_at))
    }

    /// Sends a message whose id is not taken and which is not refused.
    pub(super) fn put(&mut self, send: &Send, first_sent_at: Millis) -> Done {
        if let Some(salt) = send.new_salt {
            // Ids of earlier messages are stored in full, so they do not change.
            self.salt = salt;
        }
        let group = send.group.as_deref().map(|name| self.group_number(name));
        let mut due = send.due.from(self.now);
        if let Some(wait) = send.choices.max_wait() {
            due = due.min(first_sent_at + wait).max(self.now);
        }
        let mut add = |payload: &&[u8]| {
            let seq = self.add(send.id.as_deref(), payload, due);
            let m = self.msg_mut(seq);
            m.group = group;
            m.priority = send.priority;
            m.choices = send.choices.clone();
            m.is_point = send.due == DueTime::At(due);
            m.is_given = send.id.is_some();
            m.first_sent_at = first_sent_at;
            let is_late = self.expiry(seq).is_some_and(|at| at <= self.now);
            self.hold_if_after(seq, !is_late);
            let m = self.msgs.iter().find(|m| m.seq == seq);
            let is_free = |m: &&Msg| m.stored.is_pending() && m.stored != StoredState::Held;
            let park = m.filter(is_free).and_then(|m| m.choices.park());
            if let Some(park) = park.filter(|_| !is_late) {
                self.park(seq, park);
            }
            if is_late {
                self.die(seq, Reason::Expired);
            }
            Sent::Added(seq)
        };
        Done::Sent(send.payloads.iter().map(&mut add).collect())
    }

    fn is_group_alive(&self, name: Option<&[u8]>) -> bool {
        let number = self.groups.iter().position(|g| Some(&*g.name) == name);
        number.is_some() && self.msgs.iter().any(|m| m.is_live() && m.group == number)
    }

    fn taken(&mut self) -> Done {
        self.totals.duplicates += 1;
        Done::Sent([Sent::Taken].into_iter().collect())
    }

    /// Whether DEDUP keeps an id taken.
    fn is_remembered(&self, id: &[u8]) -> bool {
        let dedup = self.settings.dedup;
        let counts = |of: &[u8], at: Millis| of == id && at + dedup > self.now;
        let mut records = self.msgs.iter().filter(|m| m.is_settled());
        records.any(|m| counts(&m.id, m.ended_at))
            || self.ended_ids.iter().any(|(id, at)| counts(id, *at))
    }

    /// Removes a record. DEDUP still remembers its id.
    pub(super) fn drop_record(&mut self, seq: Seq) {
        let m = self.msg(seq);
        if m.is_settled() && self.settings.dedup > 0 {
            self.ended_ids.push((m.id.clone(), m.ended_at));
        }
        self.msgs.retain(|m| m.seq != seq);
    }

    /// Adds a message. The caller sets its group and options.
    fn add(&mut self, id: Option<&[u8]>, payload: &[u8], due: Millis) -> Seq {
        self.last_seq += 1;
        self.totals.sent += 1;
        let seq = self.last_seq;
        let made = generated(seq, self.now, self.salt);
        self.msgs.push(Msg {
            seq,
            id: id.unwrap_or(&made).to_vec(),
            payload: payload.to_vec(),
            group: None,
            priority: 0,
            choices: Choices::default(),
            due,
            due_at: due,
            score_base: due,
            ttl_base: due,
            is_point: false,
            is_given: false,
            sent_at: self.now,
            stored: if due > self.now {
                StoredState::Delayed
            } else {
                StoredState::Due
            },
            attempt: 0,
            failures: 0,
            timeouts: 0,
            consumer: None,
            errors: Vec::new(),
            snoozed: false,
            note: Vec::new(),
            first_sent_at: self.now,
            receipt: 0,
            batch: 0,
            lease_until: NEVER,
            old_end: None,
            ended_at: NEVER,
            reason: None,
            after_counts: Counts::default(),
            rerun: None,
            parked_at: None,
            signal: None,
        });
        seq
    }
}
