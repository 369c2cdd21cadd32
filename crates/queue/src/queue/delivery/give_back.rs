//! The way of a running message back into its queue: after a nack, at the end of
//! its lease, or with the rest of its batch.

use crate::index::leases::Lease;
use crate::index::ready_line::Join;
use crate::limits::MAX_KEPT_ERROR;
use crate::message::after::Park;
use crate::message::errors::FailedAttempt;
use crate::message::retry;
use crate::message::state::{Reason, StoredState};
use crate::message::Choices;
use crate::op::Happened;
use crate::queue::Queue;
use crate::text::cut;
use crate::transition::Kind;
use crate::{GroupIx, Millis, Receipt, Seq, MAX_EXACT};

/// The next state of a message whose delivery failed or was given back.
pub(in crate::queue) enum Return {
    /// The message becomes due again at this time (Unix ms).
    Waits(Millis),
    /// Its lease ran out: it counts as failed and is due at once.
    TimedOut,
    /// The message returns to its old order, as if it had not been delivered.
    Uncounted,
    /// The message becomes due again at this time (Unix ms). Neither an attempt nor a
    /// failure is counted.
    Snoozed(Millis),
    /// The message waits for a signal. Neither an attempt nor a failure is counted.
    Parked(Park),
    /// The message dies.
    Dies(Reason),
}

impl Return {
    /// Whether the attempt counts as a failed one.
    pub(in crate::queue) fn is_failed_attempt(&self) -> bool {
        !matches!(
            self,
            Return::Uncounted | Return::Snoozed(_) | Return::Parked(_)
        )
    }

    /// When the message becomes due again (Unix ms), if it waits.
    pub(in crate::queue) fn due(&self) -> Option<Millis> {
        match self {
            Return::Waits(due) | Return::Snoozed(due) => Some(*due),
            _ => None,
        }
    }

    /// Whether a breaker counts this end as a failure.
    fn is_failure(&self) -> bool {
        match self {
            Return::Waits(_) | Return::TimedOut => true,
            Return::Dies(Reason::Retries | Reason::Timeouts) => true,
            Return::Uncounted | Return::Snoozed(_) | Return::Parked(_) => false,
            Return::Dies(Reason::Rejected | Reason::Expired | Reason::Batch | Reason::Children) => {
                false
            }
        }
    }
}

/// The receipts in order, each once.
pub(in crate::queue) fn distinct(receipts: &[Receipt]) -> smallvec::SmallVec<[Receipt; 4]> {
    let mut distinct = smallvec::SmallVec::from_slice(receipts);
    distinct.sort_unstable();
    distinct.dedup();
    distinct
}

impl Queue {
    /// Ends the lease of a message that has run out, or whose connection has closed:
    /// `closed` is its receipt then, and the message waits for its backoff. Returns the
    /// reason if the message died.
    pub(in crate::queue) fn time_out(
        &mut self,
        seq: Seq,
        closed: Option<Receipt>,
        now: Millis,
        join: Join,
    ) -> Option<Reason> {
        let later = self.later_of_batch(seq);
        let retries = self.state.store.with(seq, |message| {
            let ext = message.extension_mut();
            ext.timeouts = ext.timeouts.saturating_add(1);
            let own = ext.choices.as_ref();
            let own_timeouts = own.and_then(|choices| choices.max_timeouts());
            let most = own_timeouts.unwrap_or(self.state.settings.max_timeouts);
            let is_last = most > 0 && u64::from(ext.timeouts) >= most;
            let own_retries = own.and_then(|choices| choices.retries);
            (own_retries, ext.failures.saturating_add(1), is_last)
        });
        let (own, failures, is_last) = retries?;
        let retries = own.unwrap_or(self.state.settings.retries);
        // No random number is drawn for the end of a connection. Receipts differ, so they
        // spread as well.
        let wait = closed.map_or(0, |receipt| self.backoff_wait(seq, failures, receipt));
        let outcome = if is_last {
            Return::Dies(Reason::Timeouts)
        } else if retries >= 0 && i64::from(failures) > retries {
            Return::Dies(Reason::Retries)
        } else if wait > 0 {
            Return::Waits(now.saturating_add(wait).min(MAX_EXACT))
        } else {
            Return::TimedOut
        };
        self.state.totals.timeouts += 1;
        self.notes.effects.changed = true;
        self.notes.effects.visible = true;
        self.notes.effects.happened.add(Happened::TIMEOUT);
        let groups = self.groups_of([seq].iter());
        self.keep_failed_attempt(seq, b"timeout", now);
        self.note_until(seq, Kind::Timeout, now, outcome.due().unwrap_or(now));
        let died = self.give_back(seq, outcome, now);
        for seq in later {
            self.come_back_uncounted(seq, now);
        }
        self.refresh_each(&groups, now, join);
        died
    }

    /// Keeps the present attempt of a message, which has failed, as its ERRORS says. The
    /// delivery has not ended yet.
    pub(in crate::queue) fn keep_failed_attempt(&mut self, seq: Seq, text: &[u8], now: Millis) {
        let Some(message) = self.state.store.get(seq) else {
            return;
        };
        let own = message.choices().and_then(Choices::errors);
        let most = own.unwrap_or(self.state.settings.errors);
        if most == 0 && message.errors().is_empty() {
            return;
        }
        let failed = FailedAttempt {
            attempt: message.history.attempt(),
            at: now,
            consumer: self
                .state
                .consumers
                .name(message.history.consumer())
                .map(Into::into),
            text: cut(text, MAX_KEPT_ERROR).into(),
        };
        self.state
            .store
            .with(seq, |message| message.extension_mut().fail(failed, most));
    }

    /// How long a message waits after this failure (1, 2, ...) of it, in ms. `random`
    /// decides the jitter.
    pub(in crate::queue) fn backoff_wait(&self, seq: Seq, failures: u32, random: u64) -> Millis {
        let own = self
            .state
            .store
            .get(seq)
            .and_then(|message| message.choices());
        let backoff = own.and_then(|choices| choices.backoff);
        retry::spread(
            retry::wait(backoff.unwrap_or(self.state.settings.backoff), failures),
            self.state.settings.jitter,
            self.state.settings.max_backoff,
            retry::mix(random, seq),
        )
    }

    /// Returns a running message without counting an attempt: its batch came back,
    /// or the queue was copied.
    pub(in crate::queue) fn come_back_uncounted(&mut self, seq: Seq, now: Millis) {
        let running = self
            .state
            .store
            .get(seq)
            .is_some_and(|message| message.stored == StoredState::Running);
        if running {
            self.give_back(seq, Return::Uncounted, now);
        }
    }

    /// Returns all running messages without counting an attempt.
    pub(in crate::queue) fn release_all(&mut self, now: Millis) {
        let running: Vec<Seq> = self.state.leases.iter().map(|lease| lease.seq).collect();
        let groups = self.groups_of(running.iter());
        for seq in running {
            self.come_back_uncounted(seq, now);
        }
        self.refresh_each(&groups, now, self.join(now));
    }

    /// The groups of these messages, each once.
    pub(in crate::queue) fn groups_of<'a>(
        &self,
        seqs: impl Iterator<Item = &'a Seq>,
    ) -> Vec<GroupIx> {
        let messages = seqs.filter_map(|seq| self.state.store.get(*seq));
        let mut groups: Vec<GroupIx> = messages.map(|message| message.group).collect();
        groups.sort_unstable();
        groups.dedup();
        self.put_in_order(&mut groups);
        groups
    }

    /// Refreshes groups after one operation on several messages. The operation
    /// counts as a whole: a group keeps its position in the ready line if it could
    /// give before and can afterwards.
    pub(in crate::queue) fn refresh_each(&mut self, groups: &[GroupIx], now: Millis, join: Join) {
        for ix in groups {
            self.refresh(*ix, now, join);
        }
    }

    /// Ends a delivery with this outcome. Returns the reason if the message died.
    /// The caller refreshes the group.
    pub(in crate::queue) fn give_back(
        &mut self,
        seq: Seq,
        outcome: Return,
        now: Millis,
    ) -> Option<Reason> {
        let receipt = self
            .state
            .store
            .get(seq)
            .map_or(0, |message| message.receipt());
        let ended = self.unlease(seq);
        if let (Some(_), Some(ended)) = (self.state.settings.breaker, ended) {
            if outcome.is_failure() {
                self.count_failure(seq, ended.group, ended.was_probe, now);
            }
        }
        self.state.store.with(seq, |message| match outcome {
            Return::Uncounted => {
                let ext = message.extension_mut();
                ext.attempt = ext.attempt.saturating_sub(1);
            }
            Return::Snoozed(_) | Return::Parked(_) => {
                let ext = message.extension_mut();
                ext.attempt = ext.attempt.saturating_sub(1);
                if ext.failures > 0 {
                    ext.texts_mut().snoozed = true;
                }
            }
            _ => {
                let ext = message.extension_mut();
                ext.failures = ext.failures.saturating_add(1);
                if let Some(texts) = &mut ext.texts {
                    texts.snoozed = false;
                }
            }
        })?;
        let expired = self.expired_now(seq, now).is_some();
        let reason = match outcome {
            Return::Dies(reason) => Some(reason),
            _ if expired => Some(Reason::Expired),
            // With its new options the message may have expired.
            _ if self.indexes.has_reruns && self.retry_with_rerun(seq) => {
                self.expired_now(seq, now)
            }
            _ => None,
        };
        match (reason, outcome) {
            (Some(reason), _) => self.die(seq, reason, now),
            (None, Return::Parked(park)) if self.may_park(seq, receipt) => {
                self.park(seq, park, now);
            }
            (None, outcome) => {
                if let Some(message) = self.state.store.get_mut(seq) {
                    match outcome {
                        Return::Waits(due) | Return::Snoozed(due) => {
                            message.extension_mut().due_at = due;
                            message.due = due;
                        }
                        Return::TimedOut => message.due = now,
                        Return::Uncounted | Return::Parked(_) | Return::Dies(_) => {}
                    }
                }
                self.enter_pending(seq, now);
            }
        }
        reason
    }

    /// The reason of its death, if a message that comes back has expired by `now`.
    fn expired_now(&self, seq: Seq, now: Millis) -> Option<Reason> {
        let at = self.expiry(self.state.store.get(seq)?)?;
        (at <= now).then_some(Reason::Expired)
    }

    /// The lease with this receipt, if it has not ended by `now`.
    pub(in crate::queue) fn current(&self, receipt: Receipt, now: Millis) -> Option<Lease> {
        self.state
            .leases
            .find(receipt)
            .filter(|lease| lease.until > now)
    }
}
