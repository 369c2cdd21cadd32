//! Checks of the leases of a snapshot, and of the batches that they were given in.

use super::{Checked, Term};
use crate::index::leases::{Batch, Lease};
use crate::limits::{ensure, Invalid, MAX_COUNT};
use crate::message::Message;
use crate::{Receipt, Seq};

/// Checks a batch that follows one whose last receipt is `before`.
pub fn batch(first: Receipt, len: u64, before: Receipt, last_receipt: Receipt) -> Checked {
    let last = first.saturating_add(len).saturating_sub(1);
    ensure(
        (2..=MAX_COUNT).contains(&len) && first > before && last <= last_receipt,
        "a batch must have 2 to 10000 receipts that were given out, after those of the batch before",
    )
}

/// A leased message.
#[derive(Debug, Clone, Copy)]
pub struct Running {
    pub lease: Lease,
    pub batch: Receipt,
    pub group: Option<u64>,
}

impl Running {
    pub fn of(
        seq: Seq,
        message: &Message,
        group: Option<u64>,
        term: Option<Term>,
    ) -> Option<Running> {
        let Term { batch, until } = term?;
        let receipt = message.receipt();
        let lease = Lease {
            receipt,
            seq,
            until,
        };
        Some(Running {
            lease,
            batch,
            group,
        })
    }
}

/// The batches of the leased messages.
#[derive(Debug, Default)]
pub struct Batches {
    /// Batches of more than one message.
    pub batches: Vec<Batch>,
    /// The first receipts of all batches of groups, each with the number of its group.
    pub of_groups: Vec<(u64, Receipt)>,
}

/// Sorts the leased messages by receipt and finds their batches.
///
/// Errors: a batch is of more than one group, or has receipts of others between its
/// own.
pub fn batches(running: &mut [Running], declared: &[Batch]) -> Result<Batches, Invalid> {
    running.sort_unstable_by_key(|r| r.lease.receipt);
    let mut found = Batches::default();
    let mut declared = declared.iter().copied().peekable();
    let mut before: Option<Running> = None;
    for r in running.iter().copied() {
        let receipt = r.lease.receipt;
        ensure(
            before.is_none_or(|before| before.lease.receipt < receipt),
            "two messages have the same receipt",
        )?;
        // At least one message of each declared batch must be running.
        while let Some(passed) = declared.next_if(|batch| batch.last < receipt) {
            ensure_used(&found, passed)?;
        }
        let covering = declared.peek().filter(|batch| batch.first <= receipt);
        let batch = covering.copied().unwrap_or(Batch::new(receipt, 1));
        ensure(
            r.batch == batch.first,
            "a message names another batch than the one that has its receipt",
        )?;
        let of_many = batch.count() > 1;
        ensure(
            r.group.is_some() || !of_many,
            "a batch of several messages must be of a group",
        )?;
        let begins = before.is_none_or(|before| before.batch != r.batch);
        if begins {
            if let Some(group) = r.group {
                found.of_groups.push((group, r.batch));
            }
            if of_many {
                found.batches.push(batch);
            }
        } else {
            ensure(
                before.is_some_and(|before| before.group == r.group),
                "the messages of a batch must be of one group",
            )?;
        }
        before = Some(r);
    }
    for batch in declared {
        ensure_used(&found, batch)?;
    }
    Ok(found)
}

fn ensure_used(found: &Batches, batch: Batch) -> Checked {
    ensure(
        found.batches.last() == Some(&batch),
        "a batch must have a running message",
    )
}
