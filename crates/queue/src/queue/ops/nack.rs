//! NACK: deliveries that failed or are given back.

use crate::error::Error;
use crate::message::state::Reason;
use crate::message::Message;
use crate::op::{Done, Happened, NackKind, NackPause, Paused};
use crate::queue::delivery::give_back::{distinct, Return};
use crate::queue::Queue;
use crate::seeded::{seeded, Bug};
use crate::transition::Kind;
use crate::{Millis, Receipt, Seq, MAX_EXACT};

/// The arguments of a NACK.
pub(in crate::queue) struct Nack<'a> {
    pub receipts: &'a [Receipt],
    pub kind: NackKind,
    pub error: Option<&'a [u8]>,
    /// Decides the jitter of the backoffs.
    pub random: u64,
    pub note: Option<&'a [u8]>,
    pub pause: Option<NackPause>,
}

impl Queue {
    /// Nacks deliveries, all of them together. Returns how many receipts were
    /// current.
    ///
    /// Errors: a group is to be paused, and one of the messages has none.
    pub(in crate::queue) fn nack(&mut self, nack: &Nack, now: Millis) -> Result<Done, Error> {
        let mut nacked: Vec<Seq> = Vec::with_capacity(nack.receipts.len());
        let mut later: Vec<Seq> = Vec::new();
        let mut batch = None;
        for receipt in distinct(nack.receipts) {
            let Some(lease) = self.current(receipt, now) else {
                continue;
            };
            nacked.push(lease.seq);
            // Receipts of one batch are consecutive, so the lowest receipt named
            // decides which later messages come back with it.
            let own = self.state.leases.batch_of(receipt);
            if batch != Some(own) {
                batch = Some(own);
                later.extend(self.later_of_batch(lease.seq));
            }
        }
        if let Some(pause) = nack.pause {
            self.pause_with(pause, &nacked, now)?;
        }
        let groups = self.groups_of(nacked.iter().chain(&later));
        for seq in &nacked {
            self.nack_one(*seq, nack, now);
        }
        for seq in later {
            self.come_back_uncounted(seq, now);
        }
        if !seeded(Bug::NackKeepsPlace) {
            self.refresh_each(&groups, now, self.join(now));
        }
        Ok(Done::Count(nacked.len() as u64))
    }

    /// Pauses the queue, or the groups of these messages. Does nothing if there are
    /// none. The caller refreshes the groups.
    fn pause_with(&mut self, pause: NackPause, nacked: &[Seq], now: Millis) -> Result<(), Error> {
        let until = now.saturating_add(pause.ms).min(MAX_EXACT);
        match pause.of {
            Paused::Queue if nacked.is_empty() => {}
            Paused::Queue => self.extend_pause(until),
            Paused::Group => {
                let groups = self.groups_of(nacked.iter());
                if groups
                    .iter()
                    .any(|ix| self.state.groups.name(*ix).is_none())
                {
                    return Err(Error::NoGroup);
                }
                for ix in groups {
                    self.extend_group_pause(ix, until);
                }
            }
        }
        Ok(())
    }

    /// Whether a running message dies by a nack of this kind: its retries are spent, or it is rejected.
    pub(in crate::queue) fn dies_by(&self, message: &Message, kind: NackKind) -> bool {
        let own = message.choices();
        let retries = own
            .and_then(|c| c.retries)
            .unwrap_or(self.state.settings.retries);
        match kind {
            NackKind::Silent | NackKind::Snooze(_) | NackKind::Park(_) => false,
            NackKind::Fatal => true,
            NackKind::Delay(_) | NackKind::Backoff => {
                retries >= 0 && i64::from(message.failures()) >= retries
            }
        }
    }

    fn nack_one(&mut self, seq: Seq, nack: &Nack, now: Millis) {
        let Some(message) = self.state.store.get(seq) else {
            return;
        };
        self.state.consumers.nack(message.history.consumer());
        let failures = message.failures().saturating_add(1);
        let dies = self.dies_by(message, nack.kind);
        let outcome = match nack.kind {
            NackKind::Silent => Return::Uncounted,
            NackKind::Snooze(ms) => Return::Snoozed(now.saturating_add(ms).min(MAX_EXACT)),
            NackKind::Park(park) => Return::Parked(park),
            NackKind::Fatal => Return::Dies(Reason::Rejected),
            _ if dies => Return::Dies(Reason::Retries),
            NackKind::Delay(delay) => Return::Waits(now.saturating_add(delay).min(MAX_EXACT)),
            NackKind::Backoff => {
                let wait = self.backoff_wait(seq, failures, nack.random);
                Return::Waits(now.saturating_add(wait).min(MAX_EXACT))
            }
        };
        if let Some(error) = nack.error {
            self.state.store.with(seq, |message| {
                message.extension_mut().texts_mut().error = Some(error.into());
            });
        }
        if outcome.is_failed_attempt() {
            self.keep_failed_attempt(seq, nack.error.unwrap_or_default(), now);
        }
        if let Some(note) = nack.note {
            self.leave_note(seq, note);
        }
        self.state.totals.nacked += 1;
        self.notes.effects.changed = true;
        self.notes.effects.visible = true;
        self.notes.effects.happened.add(Happened::NACKED);
        self.note_until(seq, Kind::Nacked, now, outcome.due().unwrap_or(now));
        self.give_back(seq, outcome, now);
    }
}
