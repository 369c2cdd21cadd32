//! Model of ACK, NACK, TOUCH, lease timeouts and the end of messages.

use super::Model;
use crate::message::after::Park;
use crate::message::errors::FailedAttempt;
use crate::message::state::{Reason, StoredState};
use crate::op::{NackKind, NackPause, Paused};
use crate::settings::{Backoff, OnDead};
use crate::{Error, Millis, Receipt, Seq};

/// The way in which a message comes back from a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Back {
    /// Counted as a failure. Waits this many ms; `None` after a lease timeout,
    /// without a wait.
    Failed(Option<Millis>),
    /// The message's leases were lost as often as MAXTIMEOUTS allows.
    Worn,
    /// The delivery is not counted, as if it had not happened.
    Uncounted,
    /// Not counted, and delayed for this many ms.
    Snoozed(Millis),
    /// Not counted, and waits for a signal.
    Parked(Park),
    /// The message is rejected: it dies.
    Rejected,
}

impl Model {
    pub(super) fn ack(&mut self, receipts: &[Receipt]) -> u64 {
        let mut n = 0;
        for receipt in receipts {
            if let Some(seq) = self.running(*receipt).map(|m| m.seq) {
                self.totals.acked += 1;
                let who = self.msg(seq).group;
                if self.withdraw(seq) {
                    self.close_breaker(who);
                }
                self.end(seq, StoredState::Finished);
                n += 1;
            }
        }
        n
    }

    pub(super) fn nack(
        &mut self,
        receipts: &[Receipt],
        kind: NackKind,
        [error, note]: [Option<&[u8]>; 2],
        pause: Option<NackPause>,
    ) -> Result<u64, Error> {
        let named = self.named(receipts);
        let is_of_group = pause.is_some_and(|pause| pause.of == Paused::Group);
        if is_of_group && named.iter().any(|seq| self.msg(*seq).group.is_none()) {
            return Err(Error::NoGroup);
        }
        for seq in &named {
            let Some(pause) = pause else { break };
            let until = Some(self.now + pause.ms);
            match (pause.of, self.msg(*seq).group) {
                (Paused::Queue, _) => self.paused_until = self.paused_until.max(until),
                (Paused::Group, Some(number)) => {
                    let group = &mut self.groups[number];
                    group.paused_until = group.paused_until.max(until);
                }
                (Paused::Group, None) => {}
            }
        }
        self.leave_note(&named, note);
        let dragged = self.dragged_along(&named);
        self.totals.nacked += named.len() as u64;
        for seq in &named {
            if !matches!(
                kind,
                NackKind::Silent | NackKind::Snooze(_) | NackKind::Park(_)
            ) {
                self.keep_error(*seq, error.unwrap_or_default());
            }
            match kind {
                NackKind::Backoff => {
                    let wait = self.backoff(*seq);
                    self.come_back(*seq, Back::Failed(Some(wait)));
                }
                NackKind::Delay(ms) => self.come_back(*seq, Back::Failed(Some(ms))),
                NackKind::Silent => self.come_back(*seq, Back::Uncounted),
                NackKind::Snooze(ms) => self.come_back(*seq, Back::Snoozed(ms)),
                NackKind::Park(park) => self.come_back(*seq, Back::Parked(park)),
                NackKind::Fatal => self.come_back(*seq, Back::Rejected),
            }
        }
        for seq in dragged {
            self.come_back(seq, Back::Uncounted);
        }
        Ok(named.len() as u64)
    }

    /// Keeps the failure of a running message, as ERRORS says.
    fn keep_error(&mut self, seq: Seq, text: &[u8]) {
        let (at, of_queue) = (self.now, self.settings.errors);
        let m = self.msg_mut(seq);
        m.errors.push(FailedAttempt {
            attempt: m.attempt,
            at,
            consumer: m.consumer.as_deref().map(Into::into),
            text: text.into(),
        });
        let most = usize::from(m.choices.errors().unwrap_or(of_queue));
        while m.errors.len() > most {
            m.errors.remove(0);
        }
    }

    fn leave_note(&mut self, named: &[Seq], note: Option<&[u8]>) {
        for seq in named {
            if let Some(note) = note {
                self.msg_mut(*seq).note = note.to_vec();
            }
        }
    }

    pub(super) fn touch(&mut self, ms: Millis, receipts: &[Receipt], note: Option<&[u8]>) -> u64 {
        let until = self.now + ms;
        let named = self.named(receipts);
        self.leave_note(&named, note);
        for seq in &named {
            let m = self.msg_mut(*seq);
            m.lease_until = until;
            m.old_end = None;
        }
        named.len() as u64
    }

    pub(super) fn grace(&mut self, ms: Millis, receipts: &[Receipt]) -> u64 {
        let until = self.now + ms;
        let mut named = self.named(receipts);
        named.retain(|seq| self.msg(*seq).lease_until > until);
        for seq in &named {
            let m = self.msg_mut(*seq);
            m.old_end = m.old_end.or(Some(m.lease_until));
            m.lease_until = until;
        }
        named.len() as u64
    }

    pub(super) fn end_leases(&mut self, receipts: &[Receipt]) -> u64 {
        let mut n = 0;
        for receipt in receipts {
            // An earlier timeout of this command may have brought this message back
            // already.
            if let Some(seq) = self.running(*receipt).map(|m| m.seq) {
                self.time_out(seq, true);
                self.line_up(self.ticket);
                n += 1;
            }
        }
        n
    }

    /// Ends a lease that has run out, or whose connection has closed. If the connection has
    /// closed, the message waits for its backoff.
    pub(super) fn time_out(&mut self, seq: Seq, closed: bool) {
        let dragged = self.dragged_along(&[seq]);
        self.keep_error(seq, b"timeout");
        self.totals.timeouts += 1;
        self.msg_mut(seq).timeouts += 1;
        let wait = Some(self.backoff(seq)).filter(|wait| closed && *wait > 0);
        let m = self.msg(seq);
        let most = m.choices.max_timeouts();
        let most = most.unwrap_or(self.settings.max_timeouts);
        let back = match most > 0 && u64::from(m.timeouts) >= most {
            true => Back::Worn,
            false => Back::Failed(wait),
        };
        self.come_back(seq, back);
        for seq in dragged {
            self.come_back(seq, Back::Uncounted);
        }
    }

    /// The running messages with these receipts, each once.
    fn named(&self, receipts: &[Receipt]) -> Vec<Seq> {
        let mut receipts = receipts.to_vec();
        receipts.sort_unstable();
        receipts.dedup();
        let running = receipts.iter().filter_map(|r| self.running(*r));
        running.map(|m| m.seq).collect()
    }

    /// Messages that come back together with these: in each batch of a group, those
    /// that were delivered after the first of them.
    fn dragged_along(&self, named: &[Seq]) -> Vec<Seq> {
        let follows = |seq: Seq| {
            let m = self.msg(seq);
            let leads = |other: &Seq| {
                let other = self.msg(*other);
                other.group.is_some() && other.batch == m.batch && other.receipt < m.receipt
            };
            m.stored == StoredState::Running && !named.contains(&seq) && named.iter().any(leads)
        };
        let all = self.msgs.iter().map(|m| m.seq);
        all.filter(|seq| follows(*seq)).collect()
    }

    /// The wait in ms after the failure that is about to be counted.
    fn backoff(&self, seq: Seq) -> Millis {
        let m = self.msg(seq);
        let failures = m.failures + 1;
        let wait = match m.choices.backoff.unwrap_or(self.settings.backoff) {
            Backoff::Fixed(ms) => ms,
            Backoff::Linear(ms) => ms * Millis::from(failures),
            Backoff::Exp(ms) => ms * 2u64.pow(failures - 1),
        };
        match self.settings.max_backoff {
            0 => wait,
            cap => wait.min(cap),
        }
    }

    /// When a message expires, if it has a TTL.
    pub(super) fn expiry(&self, seq: Seq) -> Option<Millis> {
        let m = self.msg(seq);
        if let Some(at) = m.choices.expire_at() {
            return Some(at);
        }
        if m.stored == StoredState::Held {
            return None;
        }
        match m.choices.ttl.unwrap_or(self.settings.ttl) {
            0 => None,
            ttl => Some(m.ttl_base + ttl),
        }
    }

    pub(super) fn come_back(&mut self, seq: Seq, back: Back) {
        let now = self.now;
        let was_probe = self.withdraw(seq);
        if matches!(back, Back::Failed(_) | Back::Worn) {
            self.count_failure(seq, was_probe);
        }
        let forgiven = self.msg(seq).choices.retries;
        let forgiven = forgiven.unwrap_or(self.settings.retries);
        let expired = self.expiry(seq).is_some_and(|at| at <= now);
        let m = self.msg_mut(seq);
        match back {
            Back::Uncounted => m.attempt -= 1,
            Back::Snoozed(_) | Back::Parked(_) => {
                m.attempt -= 1;
                m.snoozed = true;
            }
            _ => {
                m.failures += 1;
                m.snoozed = false;
            }
        }
        let spent = forgiven >= 0 && i64::from(m.failures) > forgiven;
        match back {
            Back::Worn => return self.die(seq, Reason::Timeouts),
            Back::Rejected => return self.die(seq, Reason::Rejected),
            Back::Failed(_) if spent => return self.die(seq, Reason::Retries),
            _ if expired => return self.die(seq, Reason::Expired),
            _ => {}
        }
        self.retry_with_rerun(seq);
        if self.expiry(seq).is_some_and(|at| at <= now) {
            return self.die(seq, Reason::Expired);
        }
        let m = self.msg_mut(seq);
        let receipt = std::mem::take(&mut m.receipt);
        m.old_end = None;
        if let Back::Parked(park) = back {
            if self.park_after(seq, receipt, park) {
                return;
            }
        }
        let m = self.msg_mut(seq);
        if let Back::Snoozed(ms) = back {
            m.due = now + ms;
            m.due_at = m.due;
        }
        if let Back::Failed(wait) = back {
            m.due = now + wait.unwrap_or(0);
            if wait.is_some() {
                m.due_at = m.due;
            }
        }
        // A message that comes back uncounted is due later if its clock was set back meanwhile.
        m.stored = match m.due > now {
            false => StoredState::Due,
            true if m.failures > 0 && !m.snoozed => StoredState::Retry,
            true => StoredState::Delayed,
        };
    }

    pub(super) fn die(&mut self, seq: Seq, reason: Reason) {
        self.totals.deaths += 1;
        match reason {
            Reason::Retries | Reason::Timeouts => self.ticked.dead += 1,
            Reason::Expired => {
                self.ticked.expired += 1;
                self.totals.expired += 1;
            }
            Reason::Rejected | Reason::Batch | Reason::Children => {}
        }
        let m = self.msg_mut(seq);
        m.reason = Some(reason);
        let group = m.group;
        if self.settings.on_dead == OnDead::Block {
            if let Some(number) = group {
                self.groups[number].held_by.push(seq);
            }
        }
        self.end(seq, StoredState::Dead);
    }

    pub(super) fn end(&mut self, seq: Seq, stored: StoredState) {
        let now = self.now;
        self.withdraw(seq);
        let m = self.msg_mut(seq);
        m.stored = stored;
        m.receipt = 0;
        m.ended_at = now;
        m.signal = None;
        if m.parked_at.take().is_some() {
            m.due = m.due_at;
        }
        self.member_ended(seq, stored);
        if self.end_for_rerun(seq) {
            return;
        }
        let retain = self.msg(seq).choices.retain();
        if stored != StoredState::Dead && retain.unwrap_or(self.settings.retain) == 0 {
            self.drop_record(seq);
        }
        self.prune_counts();
    }

    /// Keeps only as many records as RETAINCOUNT and DEADCOUNT allow.
    pub(super) fn prune_counts(&mut self) {
        let settled = [StoredState::Finished, StoredState::Cancelled];
        let limits = [
            (&settled[..], self.settings.retain_count),
            (&[StoredState::Dead][..], self.settings.dead_count),
        ];
        for (positions, keep) in limits.into_iter().filter(|(_, keep)| *keep > 0) {
            let of_these = self.msgs.iter().filter(|m| positions.contains(&m.stored));
            let mut records: Vec<_> = of_these.map(|m| (m.ended_at, m.seq)).collect();
            records.sort_unstable();
            let over = records.len().saturating_sub(keep as usize);
            for (_, seq) in &records[..over] {
                self.drop_record(*seq);
            }
        }
    }
}
