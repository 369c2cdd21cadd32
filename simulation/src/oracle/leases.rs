//! Leases: none ends early or late, no receipt is given out twice, and a FETCH repeats a
//! delivery exactly if its token repeats.

use std::collections::{BTreeMap, HashMap};

use super::step::Step;
use dq_queue::op::{Delivered, Deliveries, Fetch};
use dq_queue::{Millis, Op, Queue, Receipt, Seq};

/// Number of receipts that are remembered after they were given out.
const REMEMBERED: usize = 64;

/// A lease that has not ended.
struct Lease {
    seq: Seq,
    until: Millis,
    /// Number of the FETCH that gave it. The leases of a batch may end together.
    fetch: u64,
}

/// The facts that a client can know about the leases of a queue.
#[derive(Default)]
pub struct Leases {
    leases: BTreeMap<Receipt, Lease>,
    recent: Vec<Receipt>,
    highest: Receipt,
    /// Number of FETCHes that delivered anew.
    pub(super) fetches: u64,
    /// The last deliveries of consumers: the token, and the number of the FETCH.
    tokens: HashMap<Vec<u8>, (Option<Vec<u8>>, u64)>,
}

impl Leases {
    /// Draws a receipt that was given out, whether its lease has ended or not. One
    /// in 256 was never given out.
    pub fn receipt(&self, rng: &mut fastrand::Rng) -> Receipt {
        match self.recent.len() {
            0 => rng.u64(0..10),
            _ if rng.u8(..) == 0 => self.highest + rng.u64(0..3),
            n => self.recent[rng.usize(0..n)],
        }
    }

    /// Remembers a receipt that was given out.
    pub fn note(&mut self, receipt: Receipt) {
        self.highest = receipt;
        self.recent.push(receipt);
        let old = self.recent.len().saturating_sub(REMEMBERED);
        self.recent.drain(..old);
    }

    /// Leases that would end before `to` (Unix ms) end at `to`.
    pub fn spare(&mut self, to: Millis) {
        for lease in self.leases.values_mut() {
            lease.until = lease.until.max(to);
        }
    }

    /// Forgets all leases, but not which receipts were given out.
    pub fn forget(&mut self) {
        self.leases.clear();
        self.tokens.clear();
    }

    /// The message of a receipt whose lease has not ended by `now`, and whether it is
    /// certain that it has not. A lease may end together with another one of the same
    /// FETCH, so it is uncertain once one of those has ended.
    pub fn current(&self, receipt: Receipt, now: Millis) -> Option<(Seq, bool)> {
        let lease = self
            .leases
            .get(&receipt)
            .filter(|lease| lease.until > now)?;
        let mut others = self.leases.values();
        let has_over = others.any(|other| other.fetch == lease.fetch && other.until <= now);
        Some((lease.seq, !has_over))
    }

    /// Checks that a lease ended because its time is over or by a command that may end
    /// it, and that no lease lasts longer.
    pub fn check_ends(&mut self, step: &Step<'_>) -> Result<(), String> {
        self.check_new_ends(step)?;
        let (queue, now) = (step.queue, step.now);
        let may_end = match step.op {
            Op::Cancel { .. } | Op::Ack { .. } | Op::AckEach { .. } | Op::Nack { .. } => true,
            Op::EndLeases { .. } | Op::AckCost { .. } => true,
            Op::Fetch(fetch) => !fetch.acks.is_empty(),
            Op::AckSend(ack_send) => ack_send.receipt.is_some(),
            _ => step.is_removal(),
        };
        let ended: Vec<Receipt> = self
            .leases
            .keys()
            .filter(|receipt| !queue.is_running(**receipt))
            .copied()
            .collect();
        if step.caught_up && self.leases.len() > ended.len() {
            let over = |(receipt, lease): (&Receipt, &Lease)| {
                (lease.until <= now && queue.is_running(*receipt)).then_some(*receipt)
            };
            if let Some(receipt) = self.leases.iter().find_map(over) {
                return Err(format!("the lease {receipt} is over and has not ended"));
            }
        }
        let ended: Vec<(Receipt, Lease)> = ended
            .into_iter()
            .filter_map(|receipt| Some((receipt, self.leases.remove(&receipt)?)))
            .collect();
        if may_end {
            return Ok(());
        }
        for (receipt, lease) in &ended {
            let by_batch =
                |(_, other): &(Receipt, Lease)| other.fetch == lease.fetch && other.until <= now;
            if lease.until > now && !ended.iter().any(by_batch) {
                return Err(format!(
                    "the lease {receipt} until {} has ended at {now}",
                    lease.until
                ));
            }
        }
        Ok(())
    }

    /// Checks when the leases end that TOUCH, GRACE or the end of a connection changed.
    fn check_new_ends(&mut self, step: &Step<'_>) -> Result<(), String> {
        for (receipt, seq) in &step.before.unsure {
            if let Some(lease) = self.leases.get_mut(receipt) {
                lease.until = until(step.queue, *seq, step.now).unwrap_or(lease.until);
            }
        }
        for named in &step.before.named {
            let Some(lease) = self.leases.get_mut(&named.receipt) else {
                continue;
            };
            let expected = match step.op {
                Op::Touch { ms, .. } => step.now + ms,
                Op::Grace { ms, .. } => lease.until.min(step.now + ms),
                Op::EndLeases { .. } if step.queue.is_running(named.receipt) => {
                    return Err(format!("the lease {} has not been ended", named.receipt));
                }
                _ => continue,
            };
            let until = until(step.queue, named.seq, step.now);
            if until != Some(expected) {
                return Err(format!(
                    "the lease {} is to end at {expected}, not {until:?}",
                    named.receipt
                ));
            }
            lease.until = expected;
        }
        Ok(())
    }

    /// Checks that a FETCH repeats the last delivery of its consumer exactly if it has
    /// the same token and a message of the delivery still runs. Returns whether it does.
    pub fn check_repetition(
        &mut self,
        step: &Step<'_>,
        fetch: &Fetch<'_>,
        given: &Deliveries,
    ) -> Result<bool, String> {
        let (Some(consumer), Some(token)) = (&fetch.consumer, &fetch.token) else {
            return Ok(false);
        };
        let delivered = step.queue.totals().delivered - step.before.totals.delivered;
        let is_repeated = delivered == 0 && !given.is_empty();
        let Some((last, number)) = self.tokens.get(&**consumer) else {
            // A message that was delivered before a crash may be repeated.
            return Ok(is_repeated);
        };
        let is_last = last.as_deref() == Some(&**token);
        // A lease that is over repeats nothing, even if the timer has not come to it yet.
        let running = self
            .leases
            .iter()
            .filter(|(_, lease)| lease.fetch == *number && lease.until > step.now);
        let running: Vec<(Receipt, Seq)> = running
            .filter(|_| is_last)
            .map(|(receipt, lease)| (*receipt, lease.seq))
            .collect();
        let given: Vec<(Receipt, Seq)> = given.iter().map(|one| (one.receipt, one.seq)).collect();
        match is_repeated || !running.is_empty() {
            true if given != running => Err(format!("{given:?} were repeated, not {running:?}")),
            true => self.see_ends_again(step, &given).map(|()| true),
            false => Ok(false),
        }
    }

    /// The repeated leases end at the same time as before, or at their time before their
    /// connection closed.
    fn see_ends_again(&mut self, step: &Step<'_>, given: &[(Receipt, Seq)]) -> Result<(), String> {
        for (receipt, seq) in given {
            let Some(lease) = self.leases.get_mut(receipt) else {
                continue;
            };
            let until = until(step.queue, *seq, step.now).ok_or("a lease has no end")?;
            if until < lease.until {
                return Err(format!("the repetition of {receipt} has shortened it"));
            }
            lease.until = until;
        }
        Ok(())
    }

    /// Remembers with which token a consumer was given something.
    pub fn note_token(&mut self, fetch: &Fetch<'_>, given: &Deliveries) {
        let consumer = fetch.consumer.as_ref().filter(|_| !given.is_empty());
        if let Some(consumer) = consumer {
            let token = fetch.token.as_ref().map(|token| token.to_vec());
            self.tokens.insert(consumer.to_vec(), (token, self.fetches));
        }
    }

    /// Checks the lease of one delivery, and remembers it.
    pub fn check_delivery(&mut self, step: &Step<'_>, one: &Delivered) -> Result<(), String> {
        if one.attempt == 0 {
            return Err(format!("{} was delivered for the 0th time", one.seq));
        }
        if one.receipt == 0 {
            return Ok(());
        }
        if one.receipt <= self.highest {
            return Err(format!(
                "the receipt {} comes after {}",
                one.receipt, self.highest
            ));
        }
        if self.leases.values().any(|lease| lease.seq == one.seq) {
            return Err(format!("{} is leased twice", one.seq));
        }
        let until = until(step.queue, one.seq, step.now).ok_or("a lease has no end")?;
        let lease = Lease {
            seq: one.seq,
            until,
            fetch: self.fetches,
        };
        self.leases.insert(one.receipt, lease);
        self.note(one.receipt);
        Ok(())
    }
}

fn until(queue: &Queue, seq: Seq, now: Millis) -> Option<Millis> {
    queue.view(seq, now)?.lease_until()
}
