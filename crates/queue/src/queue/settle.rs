//! The end of a delivery: ACK, NACK, TOUCH, and leases that run out.

use super::Queue;
use crate::group::GroupIx;
use crate::lease::Lease;
use crate::line::Join;
use crate::op::{Done, Happened, NackKind};
use crate::state::{Place, Reason};
use crate::{retry, Millis, Receipt, Seq, MAX_EXACT};

/// What happens to the message of a delivery that failed or was given back.
enum Return {
    /// It becomes due again at this time (Unix ms).
    Waits(Millis),
    /// Its lease ran out: it counts as failed and is due at once.
    TimedOut,
    /// It returns to its old order, as if it had not been delivered.
    Uncounted,
    /// It dies.
    Dies(Reason),
}

impl Queue {
    /// Acks deliveries. Returns how many receipts were current. O(log n) each.
    pub(super) fn ack(&mut self, receipts: &[Receipt], result: Option<&[u8]>, now: Millis) -> Done {
        let acked = receipts
            .iter()
            .filter(|receipt| self.ack_one(**receipt, result, now))
            .count();
        Done::Count(acked as u64)
    }

    /// Acks one delivery. Returns whether its receipt was current.
    pub(super) fn ack_one(&mut self, receipt: Receipt, result: Option<&[u8]>, now: Millis) -> bool {
        let Some(lease) = self.leases.take_current(receipt, now) else {
            return false;
        };
        let Some(ended) = self.end_lease(lease) else {
            return false;
        };
        let (seq, group) = (lease.seq, ended.group);
        self.consumers.ack(ended.consumer);
        if let Some(result) = result {
            self.store.with(seq, |message| {
                message.extension_mut().notes_mut().result = Some(result.into());
            });
        }
        self.bytes -= ended.size;
        self.totals.acked += 1;
        self.effects.changed = true;
        self.effects.visible = true;
        self.effects.happened.add(Happened::ACKED);
        self.end(seq, Place::Finished, now);
        if group.is_some() {
            self.refresh(group, now, self.join(now));
        }
        true
    }

    /// Nacks deliveries, all of them together. Returns how many receipts were
    /// current.
    pub(super) fn nack(
        &mut self,
        receipts: &[Receipt],
        kind: NackKind,
        error: Option<&[u8]>,
        random: u64,
        now: Millis,
    ) -> Done {
        let mut nacked: Vec<Seq> = Vec::with_capacity(receipts.len());
        let mut later: Vec<Seq> = Vec::new();
        let mut batch = None;
        for receipt in distinct(receipts) {
            let Some(lease) = self.current(receipt, now) else {
                continue;
            };
            nacked.push(lease.seq);
            // Receipts of one batch are consecutive, so the lowest receipt named
            // decides which later messages come back with it.
            let own = self.leases.batch_of(receipt);
            if batch != Some(own) {
                batch = Some(own);
                later.extend(self.later_of_batch(lease.seq));
            }
        }
        let groups = self.groups_of(nacked.iter().chain(&later));
        for seq in &nacked {
            self.nack_one(*seq, kind, error, random, now);
        }
        for seq in later {
            self.come_back_uncounted(seq, now);
        }
        self.refresh_each(&groups, now, self.join(now));
        Done::Count(nacked.len() as u64)
    }

    fn nack_one(
        &mut self,
        seq: Seq,
        kind: NackKind,
        error: Option<&[u8]>,
        random: u64,
        now: Millis,
    ) {
        let Some(message) = self.store.get(seq) else {
            return;
        };
        self.consumers.nack(message.history.consumer());
        let failures = message.failures().saturating_add(1);
        let own = message.choices();
        let backoff = own.and_then(|c| c.backoff).unwrap_or(self.settings.backoff);
        let retries = own.and_then(|c| c.retries).unwrap_or(self.settings.retries);
        let spent = retries >= 0 && i64::from(failures) > retries;
        let outcome = match kind {
            NackKind::Silent => Return::Uncounted,
            NackKind::Fatal => Return::Dies(Reason::Rejected),
            _ if spent => Return::Dies(Reason::Retries),
            NackKind::Delay(delay) => Return::Waits(now.saturating_add(delay).min(MAX_EXACT)),
            NackKind::Backoff => {
                let wait = retry::spread(
                    retry::wait(backoff, failures),
                    self.settings.jitter,
                    self.settings.max_backoff,
                    retry::mix(random, seq),
                );
                Return::Waits(now.saturating_add(wait).min(MAX_EXACT))
            }
        };
        if let Some(error) = error {
            self.store.with(seq, |message| {
                message.extension_mut().notes_mut().error = Some(error.into());
            });
        }
        self.totals.nacked += 1;
        self.effects.changed = true;
        self.effects.visible = true;
        self.effects.happened.add(Happened::NACKED);
        self.give_back(seq, outcome, now);
    }

    /// Ends the lease of a message that has run out. Returns the reason if the
    /// message died.
    pub(super) fn time_out(&mut self, seq: Seq, now: Millis, join: Join) -> Option<Reason> {
        let later = self.later_of_batch(seq);
        let retries = self.store.with(seq, |message| {
            let ext = message.extension_mut();
            ext.timeouts = ext.timeouts.saturating_add(1);
            let own = ext.choices.as_ref().and_then(|choices| choices.retries);
            (own, ext.failures.saturating_add(1))
        });
        let (own, failures) = retries?;
        let retries = own.unwrap_or(self.settings.retries);
        let outcome = if retries >= 0 && i64::from(failures) > retries {
            Return::Dies(Reason::Retries)
        } else {
            Return::TimedOut
        };
        self.totals.timeouts += 1;
        self.effects.changed = true;
        self.effects.visible = true;
        self.effects.happened.add(Happened::TIMEOUT);
        let groups = self.groups_of([seq].iter());
        let died = self.give_back(seq, outcome, now);
        for seq in later {
            self.come_back_uncounted(seq, now);
        }
        self.refresh_each(&groups, now, join);
        died
    }

    /// Returns a running message without counting an attempt: its batch came back,
    /// or the queue was copied.
    fn come_back_uncounted(&mut self, seq: Seq, now: Millis) {
        let running = self
            .store
            .get(seq)
            .is_some_and(|message| message.place == Place::Running);
        if running {
            self.give_back(seq, Return::Uncounted, now);
        }
    }

    /// Returns all running messages without counting an attempt.
    pub(super) fn release_all(&mut self, now: Millis) {
        let running: Vec<Seq> = self.leases.iter().map(|lease| lease.seq).collect();
        let groups = self.groups_of(running.iter());
        for seq in running {
            self.come_back_uncounted(seq, now);
        }
        self.refresh_each(&groups, now, self.join(now));
    }

    /// The groups of these messages, each once.
    pub(super) fn groups_of<'a>(&self, seqs: impl Iterator<Item = &'a Seq>) -> Vec<GroupIx> {
        let messages = seqs.filter_map(|seq| self.store.get(*seq));
        let mut groups: Vec<GroupIx> = messages.map(|message| message.group).collect();
        groups.sort_unstable();
        groups.dedup();
        groups
    }

    /// Refreshes groups after one operation on several messages. The operation
    /// counts as a whole: a group keeps its position in the ready line if it could
    /// give before and can afterwards.
    pub(super) fn refresh_each(&mut self, groups: &[GroupIx], now: Millis, join: Join) {
        for ix in groups {
            self.refresh(*ix, now, join);
        }
    }

    /// Ends a delivery with this outcome. Returns the reason if the message died.
    /// The caller refreshes the group.
    fn give_back(&mut self, seq: Seq, outcome: Return, now: Millis) -> Option<Reason> {
        self.unlease(seq);
        self.store.with(seq, |message| match outcome {
            Return::Uncounted => {
                let ext = message.extension_mut();
                ext.attempt = ext.attempt.saturating_sub(1);
            }
            _ => {
                let ext = message.extension_mut();
                ext.failures = ext.failures.saturating_add(1);
            }
        })?;
        let message = self.store.get(seq)?;
        let expired = self.expiry(message).is_some_and(|at| at <= now);
        let reason = match outcome {
            Return::Dies(reason) => Some(reason),
            _ if expired => Some(Reason::Expired),
            _ => None,
        };
        match (reason, outcome) {
            (Some(reason), _) => self.die(seq, reason, now),
            (None, outcome) => {
                if let Some(message) = self.store.get_mut(seq) {
                    match outcome {
                        Return::Waits(due) => {
                            message.extension_mut().due_at = due;
                            message.due = due;
                        }
                        Return::TimedOut => message.due = now,
                        Return::Uncounted | Return::Dies(_) => {}
                    }
                }
                self.enter_pending(seq, now);
            }
        }
        reason
    }

    /// Sets the end of leases to `ms` from now. Returns how many receipts were
    /// current.
    pub(super) fn touch(&mut self, ms: Millis, receipts: &[Receipt], now: Millis) -> Done {
        let until = now.saturating_add(ms).min(MAX_EXACT);
        let mut touched = 0;
        for receipt in distinct(receipts) {
            let Some(lease) = self.current(receipt, now) else {
                continue;
            };
            self.leases.move_end(lease, until);
            self.note(until);
            self.effects.changed = true;
            self.effects.visible = true;
            touched += 1;
        }
        Done::Count(touched)
    }

    /// Ends leases as if they had run out now. Returns how many receipts were
    /// current.
    pub(super) fn end_leases(&mut self, receipts: &[Receipt], now: Millis) -> Done {
        let mut ended = 0;
        for receipt in receipts {
            if let Some(lease) = self.current(*receipt, now) {
                self.time_out(lease.seq, now, self.join(now));
                ended += 1;
            }
        }
        Done::Count(ended)
    }

    /// The lease with this receipt, if it has not ended by `now`.
    fn current(&self, receipt: Receipt, now: Millis) -> Option<Lease> {
        self.leases.find(receipt).filter(|lease| lease.until > now)
    }
}

/// The receipts in order, each once.
fn distinct(receipts: &[Receipt]) -> smallvec::SmallVec<[Receipt; 4]> {
    let mut distinct = smallvec::SmallVec::from_slice(receipts);
    distinct.sort_unstable();
    distinct.dedup();
    distinct
}
