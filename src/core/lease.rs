//! The leases: which message is delivered to someone, and until when.

use super::number_table::NumberTable;
use super::{Millis, Receipt, Seq, TimeIndex};

/// A batch of a group that was delivered together: consecutive receipts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch {
    /// How many were delivered in it.
    pub len: u64,
    /// How many of them are still running.
    pub left: u64,
}

/// All leases of a queue.
#[derive(Debug, Clone, Default)]
pub struct Leases {
    by_receipt: NumberTable<Seq>,
    by_end: TimeIndex,
    /// Batches of more than one message, by their first receipt.
    batches: NumberTable<Batch>,
}

impl Leases {
    /// How many messages are leased.
    pub fn len(&self) -> usize {
        self.by_receipt.len()
    }

    /// The message that has this receipt now.
    pub fn find(&self, receipt: Receipt) -> Option<Seq> {
        self.by_receipt.get(receipt).copied()
    }

    /// The lease that ends first: when, and its receipt.
    pub fn first_end(&self) -> Option<(Millis, Receipt)> {
        self.by_end.first().map(|(key, ())| key)
    }

    /// By end and receipt.
    pub fn by_end(&self) -> &TimeIndex {
        &self.by_end
    }

    /// The index by end, for freeing.
    pub fn into_by_end(self) -> TimeIndex {
        self.by_end
    }

    /// Takes out the lease that ends first; its message.
    pub fn pop_first(&mut self) -> Option<Seq> {
        let ((until, receipt), ()) = self.by_end.first()?;
        let seq = self.find(receipt);
        self.remove(receipt, until);
        seq.or_else(|| self.pop_first())
    }

    /// Enters all of others, whose receipts and batches are their own. O(n log
    /// n) of the fewer.
    pub fn append(&mut self, mut others: Leases) {
        if others.len() > self.len() {
            std::mem::swap(self, &mut others);
        }
        for ((until, receipt), ()) in others.by_end.iter() {
            if let Some(seq) = others.find(receipt) {
                self.insert(receipt, seq, until);
            }
        }
        for (first, batch) in others.batches() {
            self.batches.add(first, batch);
        }
    }

    /// Enters a lease, whose receipt is a new one.
    pub fn insert(&mut self, receipt: Receipt, seq: Seq, until: Millis) {
        self.by_receipt.add(receipt, seq);
        self.by_end.insert((until, receipt), ());
    }

    /// Takes a lease out.
    pub fn remove(&mut self, receipt: Receipt, until: Millis) {
        self.by_receipt.remove(receipt);
        self.by_end.remove(&(until, receipt));
    }

    /// Moves the end of a lease.
    pub fn move_end(&mut self, receipt: Receipt, from: Millis, to: Millis) {
        self.by_end.remove(&(from, receipt));
        self.by_end.insert((to, receipt), ());
    }

    /// Notes that `len` consecutive receipts from `first` on are one batch. A
    /// batch of one needs no note.
    pub fn open_batch(&mut self, first: Receipt, len: u64) {
        if len > 1 {
            self.batches.add(first, Batch { len, left: len });
        }
    }

    /// The leases of a snapshot: receipts with their messages and ends, and
    /// the batches of more than one message by their first receipts.
    pub fn from_parts(
        leases: Vec<(Receipt, Seq, Millis)>,
        batches: Vec<(Receipt, Batch)>,
    ) -> Leases {
        let mut ends: Vec<(Millis, Receipt)> = leases
            .iter()
            .map(|(receipt, _, until)| (*until, *receipt))
            .collect();
        ends.sort_unstable();
        Leases {
            by_receipt: leases
                .into_iter()
                .map(|(receipt, seq, _)| (receipt, seq))
                .collect(),
            by_end: TimeIndex::from_sorted(ends.into_iter().map(|key| (key, ()))),
            batches: batches.into_iter().collect(),
        }
    }

    /// The batches of more than one message, by their first receipts, in no
    /// order.
    pub fn batches(&self) -> impl Iterator<Item = (Receipt, Batch)> + '_ {
        self.batches.iter().map(|(first, batch)| (first, *batch))
    }

    /// The batch that begins with this receipt, if it has more than one.
    pub fn batch(&self, first: Receipt) -> Option<Batch> {
        self.batches.get(first).copied()
    }

    /// One message of the batch runs no longer; whether it was the last one.
    pub fn leave_batch(&mut self, first: Receipt) -> bool {
        match self.batches.get_mut(first) {
            None => true,
            Some(batch) if batch.left > 1 => {
                batch.left -= 1;
                false
            }
            Some(_) => {
                self.batches.remove(first);
                true
            }
        }
    }

    /// Bytes allocated, roughly.
    pub fn memory_bytes(&self) -> usize {
        self.by_receipt.allocation_size()
            + self.by_end.memory_bytes()
            + self.batches.allocation_size()
    }
}
