//! NACK: deliveries that failed or are given back.

use crate::message::retry;
use crate::message::state::Reason;
use crate::op::{Done, Happened, NackKind};
use crate::queue::give_back::{distinct, Return};
use crate::queue::Queue;
use crate::{Millis, Receipt, Seq, MAX_EXACT};

impl Queue {
    /// Nacks deliveries, all of them together. Returns how many receipts were
    /// current.
    pub(in crate::queue) fn nack(
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
                message.extension_mut().texts_mut().error = Some(error.into());
            });
        }
        self.totals.nacked += 1;
        self.effects.changed = true;
        self.effects.visible = true;
        self.effects.happened.add(Happened::NACKED);
        self.give_back(seq, outcome, now);
    }
}
