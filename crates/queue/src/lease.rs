//! The leases: which message is delivered to someone, and until when.

mod series;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::ops::Bound;

use super::merge::merged;
use super::ordered::{Key, OrderedSet};
use super::{Millis, Receipt, Seq, TimeIndex};
pub use series::Series;

/// One lease. It is known by its receipt: no two of a queue have the same.
#[derive(Debug, Clone, Copy)]
pub struct Lease {
    /// Its receipt.
    pub receipt: Receipt,
    /// The message that is leased.
    pub seq: Seq,
    /// When it ends.
    pub until: Millis,
}

impl Lease {
    /// Stands for the lease with this receipt, to look for it.
    fn with(receipt: Receipt) -> Lease {
        Lease {
            receipt,
            seq: 0,
            until: 0,
        }
    }

    /// Its place by end.
    fn end(&self) -> (Millis, Receipt) {
        (self.until, self.receipt)
    }
}

impl PartialEq for Lease {
    fn eq(&self, other: &Lease) -> bool {
        self.receipt == other.receipt
    }
}

impl Eq for Lease {}

impl Ord for Lease {
    fn cmp(&self, other: &Lease) -> Ordering {
        self.receipt.cmp(&other.receipt)
    }
}

impl PartialOrd for Lease {
    fn partial_cmp(&self, other: &Lease) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Key for Lease {}

/// Messages of a group that were delivered together: with consecutive
/// receipts. Batches are in the order of these, for no two share one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Batch {
    /// The last of its receipts.
    pub last: Receipt,
    /// The first of its receipts.
    pub first: Receipt,
}

impl Key for Batch {}

impl Batch {
    /// The batch of so many receipts from `first` on; `len` is not 0.
    pub fn new(first: Receipt, len: u64) -> Batch {
        Batch {
            last: first.saturating_add(len).saturating_sub(1),
            first,
        }
    }

    /// How many were delivered in it.
    pub fn count(self) -> u64 {
        self.last - self.first + 1
    }
}

/// All leases of a queue.
///
/// Receipts only grow, and most leases of a queue are of one length, so that they
/// end in the order of their receipts: one list has them in both orders.
#[derive(Debug, Clone, Default)]
pub struct Leases {
    /// Those that end no earlier than any of these with a lower receipt.
    in_step: Series,
    /// All others: an earlier one was longer, or they were moved or put back.
    others: OrderedSet<Lease>,
    /// The same, by end and receipt.
    others_by_end: TimeIndex,
    /// Batches of more than one message of which some still run.
    batches: OrderedSet<Batch>,
}

impl Leases {
    /// How many messages are leased.
    pub fn len(&self) -> usize {
        self.in_step.len() + self.others.len()
    }

    /// The lease that has this receipt now. O(log n).
    pub fn find(&self, receipt: Receipt) -> Option<Lease> {
        let wanted = Lease::with(receipt);
        let found = self.in_step.find(receipt);
        found.or_else(|| self.others.find(&wanted).map(|(lease, ())| lease))
    }

    /// The lease that ends first: when, and its receipt.
    pub fn first_end(&self) -> Option<(Millis, Receipt)> {
        let in_step = self.in_step.first().map(|lease| lease.end());
        let other = self.others_by_end.first().map(|(end, ())| end);
        match (in_step, other) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// All of them, by receipt.
    pub fn iter(&self) -> impl Iterator<Item = Lease> + '_ {
        self.starting_at(0)
    }

    /// Ends and receipts, in that order, from a bound on.
    pub fn by_end(
        &self,
        from: Bound<(Millis, Receipt)>,
    ) -> impl Iterator<Item = (Millis, Receipt)> + '_ {
        let is_before = move |lease: &Lease| match from {
            Bound::Included(bound) => lease.end() < bound,
            Bound::Excluded(bound) => lease.end() <= bound,
            Bound::Unbounded => false,
        };
        let in_step = self.in_step.iter_behind(is_before);
        let others = self.others_by_end.range_from(from);
        merged(
            in_step.map(|lease| lease.end()),
            others.map(|(end, ())| end),
        )
    }

    /// The indexes, for freeing.
    pub fn into_indexes(self) -> (Series, OrderedSet<Lease>, TimeIndex) {
        (self.in_step, self.others, self.others_by_end)
    }

    /// Takes out some lease, for freeing them all: they are of no other use
    /// afterwards. Its message.
    pub fn pop(&mut self) -> Option<Seq> {
        let popped = self.in_step.pop_first().or_else(|| {
            self.others_by_end.pop_first();
            self.others.pop_first().map(|(lease, ())| lease)
        });
        popped.map(|lease| lease.seq)
    }

    /// Enters a lease, whose receipt is a new one.
    pub fn insert(&mut self, lease: Lease) {
        if !self.in_step.push(lease) {
            self.others.insert(lease, ());
            self.others_by_end.insert(lease.end(), ());
        }
    }

    /// Enters all of others, whose receipts and batches are their own. O(n log
    /// n) of the fewer.
    pub fn append(&mut self, mut others: Leases) {
        if others.len() > self.len() {
            std::mem::swap(self, &mut others);
        }
        for lease in others.iter() {
            self.insert(lease);
        }
        for batch in others.batches() {
            self.open_batch(batch);
        }
    }

    /// Takes out the lease that has this receipt now. O(log n).
    pub fn take(&mut self, receipt: Receipt) -> Option<Lease> {
        if let Some(lease) = self.in_step.take(receipt) {
            return Some(lease);
        }
        if self.others.is_empty() {
            return None;
        }
        let (lease, ()) = self.others.take(&Lease::with(receipt))?;
        self.others_by_end.remove(&lease.end());
        Some(lease)
    }

    /// The same, if the lease is still on at `now`.
    pub fn take_current(&mut self, receipt: Receipt, now: Millis) -> Option<Lease> {
        let lease = self.take(receipt)?;
        if lease.until <= now {
            // Rare: time has ended nearly all that are over.
            self.insert(lease);
            return None;
        }
        Some(lease)
    }

    /// Moves the end of a lease.
    pub fn move_end(&mut self, lease: Lease, until: Millis) {
        if until != lease.until {
            self.take(lease.receipt);
            self.insert(Lease { until, ..lease });
        }
    }

    /// Notes that these are one batch. A batch of one needs no note.
    pub fn open_batch(&mut self, batch: Batch) {
        if batch.count() > 1 {
            self.batches.insert(batch, ());
        }
    }

    /// The leases and the batches of more than one message of a snapshot, both
    /// in order.
    pub fn from_parts(leases: Vec<Lease>, batches: Vec<Batch>) -> Leases {
        let mut in_step = Series::default();
        let mut others = leases;
        others.retain(|lease| !in_step.push(*lease));
        let mut ends: Vec<(Millis, Receipt)> = others.iter().map(Lease::end).collect();
        ends.sort_unstable();
        Leases {
            in_step,
            others: OrderedSet::from_sorted(others.into_iter().map(|lease| (lease, ()))),
            others_by_end: TimeIndex::from_sorted(ends.into_iter().map(|end| (end, ()))),
            batches: OrderedSet::from_sorted(batches.into_iter().map(|batch| (batch, ()))),
        }
    }

    /// The batches of more than one message, in order.
    pub fn batches(&self) -> impl Iterator<Item = Batch> + '_ {
        self.batches.iter().map(|(batch, ())| batch)
    }

    /// The batch that this receipt belongs to, whether it still runs or not, as
    /// long as anything of the batch does. O(log n).
    pub fn batch_of(&self, receipt: Receipt) -> Batch {
        let low = Batch {
            last: receipt,
            first: 0,
        };
        let mut from = self.batches.range_from(Bound::Included(low));
        from.next()
            .map(|(batch, ())| batch)
            .filter(|batch| batch.first <= receipt)
            .unwrap_or(Batch::new(receipt, 1))
    }

    /// The leases of the batch with this first receipt.
    pub fn of_batch(&self, first: Receipt) -> impl Iterator<Item = Lease> + '_ {
        let last = self.batch_of(first).last;
        self.starting_at(first)
            .take_while(move |lease| lease.receipt <= last)
    }

    /// The leases of the same batch with later receipts than this one.
    pub fn later_of_batch(&self, receipt: Receipt) -> impl Iterator<Item = Lease> + '_ {
        let last = self.batch_of(receipt).last;
        // Most batches are of one: there is nothing to look for.
        let later = (last > receipt).then(|| self.starting_at(receipt + 1));
        let later = later.into_iter().flatten();
        later.take_while(move |lease| lease.receipt <= last)
    }

    /// The lease with this receipt was taken out; its batch, if it was the last
    /// one of that.
    pub fn leave_batch(&mut self, receipt: Receipt) -> Option<Batch> {
        let batch = self.batch_of(receipt);
        if batch.count() == 1 {
            return Some(batch);
        }
        let next = self.starting_at(batch.first).next();
        let is_over = next.is_none_or(|lease| lease.receipt > batch.last);
        if is_over {
            self.batches.remove(&batch);
        }
        is_over.then_some(batch)
    }

    /// Bytes allocated, roughly.
    pub fn memory_bytes(&self) -> usize {
        let receipts = self.in_step.memory_bytes() + self.others.memory_bytes();
        receipts + self.others_by_end.memory_bytes() + self.batches.memory_bytes()
    }

    /// The leases from a receipt on.
    fn starting_at(&self, receipt: Receipt) -> impl Iterator<Item = Lease> + '_ {
        let in_step = self
            .in_step
            .iter_behind(move |lease| lease.receipt < receipt);
        let low = Bound::Included(Lease::with(receipt));
        let others = self.others.range_from(low).map(|(lease, ())| lease);
        merged(in_step, others)
    }
}
