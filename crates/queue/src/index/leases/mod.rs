//! The leases: which message is delivered, under which receipt and until when.
//!
//! A lease is found by its receipt (ACK, NACK, TOUCH) and by its end (timeouts).
//! Most leases need only one list for both orders: see `series.rs`.

mod series;
#[cfg(test)]
mod tests;

use std::cmp::{Ordering, Reverse};
use std::ops::Bound;

use crate::collections::merge::merged;
use crate::collections::ordered::{Key, OrderedSet};
use crate::{Millis, Receipt, Seq, TimeIndex};
pub use series::Series;

/// One lease. Its receipt identifies it: it is unique in the queue, and leases are
/// compared by it alone.
#[derive(Debug, Clone, Copy)]
pub struct Lease {
    /// The receipt of the delivery.
    pub receipt: Receipt,
    /// The number of the leased message.
    pub seq: Seq,
    /// When the lease ends.
    pub until: Millis,
}

impl Lease {
    /// A search key for the lease with this receipt.
    fn with(receipt: Receipt) -> Lease {
        Lease {
            receipt,
            seq: 0,
            until: 0,
        }
    }

    /// The key of the lease in the order of ends.
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

/// Messages of a group that were delivered together, with consecutive receipts. No
/// two batches share a receipt, so comparing the last ones puts them in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Batch {
    /// The last of its receipts.
    pub last: Receipt,
    /// The first of its receipts.
    pub first: Receipt,
}

impl Key for Batch {}

impl Batch {
    /// The batch of `len` receipts from `first` on. `len` is not 0.
    pub fn new(first: Receipt, len: u64) -> Batch {
        Batch {
            last: first.saturating_add(len).saturating_sub(1),
            first,
        }
    }

    /// How many messages were delivered in it.
    pub fn count(self) -> u64 {
        self.last - self.first + 1
    }
}

/// All leases of a queue.
///
/// Receipts only grow, and most leases of a queue last equally long, so they end in the
/// order of their receipts. Such leases are kept in one list that has both orders.
#[derive(Debug, Clone, Default)]
pub struct Leases {
    /// Leases each of which ends no earlier than all leases with lower receipts.
    in_step: Series,
    /// All other leases, by receipt: an earlier lease ends later, or they were
    /// extended or put back.
    others: OrderedSet<Lease>,
    /// The leases of `others` by end and receipt.
    others_by_end: TimeIndex,
    /// Batches of more than one message, of which at least one is still leased.
    batches: OrderedSet<Batch>,
}

impl Leases {
    /// The number of leases. O(1).
    pub fn len(&self) -> usize {
        self.in_step.len() + self.others.len()
    }

    /// The lease with this receipt. O(log n).
    pub fn find(&self, receipt: Receipt) -> Option<Lease> {
        let wanted = Lease::with(receipt);
        let found = self.in_step.find(receipt);
        found.or_else(|| self.others.find(&wanted).map(|(lease, ())| lease))
    }

    /// The end and the receipt of the lease that ends first. O(1).
    pub fn first_end(&self) -> Option<(Millis, Receipt)> {
        let in_step = self.in_step.first().map(|lease| lease.end());
        let other = self.others_by_end.first().map(|(end, ())| end);
        match (in_step, other) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// All leases in the order of their receipts.
    pub fn iter(&self) -> impl Iterator<Item = Lease> + '_ {
        self.starting_at(0)
    }

    /// Ends and receipts of the leases in the order of their ends, from a bound on.
    /// O(log n) to start, then O(1) each.
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

    /// Ends and receipts of the leases below a bound, from the last end back.
    /// O(log n) to start, then O(1) each.
    pub fn by_end_back(
        &self,
        high: (Millis, Receipt),
    ) -> impl Iterator<Item = (Millis, Receipt)> + '_ {
        let in_step = self.in_step.back_from(move |lease| lease.end() < high);
        let others = self.others_by_end.back_from(high);
        let back = merged(
            in_step.map(|lease| Reverse(lease.end())),
            others.map(|(end, ())| Reverse(end)),
        );
        back.map(|Reverse(end)| end)
    }

    /// All indexes of leases, to be freed.
    pub fn into_indexes(self) -> (Series, OrderedSet<Lease>, TimeIndex) {
        (self.in_step, self.others, self.others_by_end)
    }

    /// Adds a lease with a new receipt. O(1) if it ends last, else O(log n).
    pub fn insert(&mut self, lease: Lease) {
        if !self.in_step.push(lease) {
            self.others.insert(lease, ());
            self.others_by_end.insert(lease.end(), ());
        }
    }

    /// Removes and returns the lease with this receipt. O(log n).
    pub fn take(&mut self, receipt: Receipt) -> Option<Lease> {
        if let Some(lease) = self.in_step.take(receipt) {
            return Some(lease);
        }
        if self.others.is_empty() {
            return None;
        }
        let (lease, ()) = self.others.take(&Lease::with(receipt))?;
        let known = self.others_by_end.remove(&lease.end());
        debug_assert!(known.is_some(), "no index has the end of a lease");
        Some(lease)
    }

    /// Removes and returns the lease with this receipt, unless it has ended by
    /// `now`.
    pub fn take_current(&mut self, receipt: Receipt, now: Millis) -> Option<Lease> {
        let lease = self.take(receipt)?;
        if lease.until <= now {
            // This is rare: nearly all leases that have ended were removed by the timeout.
            self.insert(lease);
            return None;
        }
        Some(lease)
    }

    /// Changes the end of a lease. O(log n).
    pub fn move_end(&mut self, lease: Lease, until: Millis) {
        if until != lease.until {
            self.take(lease.receipt);
            self.insert(Lease { until, ..lease });
        }
    }

    /// Moves the ends that are before `to` to `to`. O(k) for the k leases in step, O(k
    /// log n) for the others.
    pub fn end_not_before(&mut self, to: Millis) {
        self.in_step.end_not_before(to);
        let from = self.others_by_end.range_from(Bound::Unbounded);
        let early: Vec<Receipt> = from
            .map(|((end, receipt), ())| (end, receipt))
            .take_while(|(end, _)| *end < to)
            .map(|(_, receipt)| receipt)
            .collect();
        for receipt in early {
            if let Some(lease) = self.find(receipt) {
                self.move_end(lease, to);
            }
        }
    }

    /// Records a batch. One of a single message needs no record.
    pub fn open_batch(&mut self, batch: Batch) {
        if batch.count() > 1 {
            self.batches.insert(batch, ());
        }
    }

    /// Builds the leases from a snapshot: all leases by receipt, and the batches of
    /// more than one message in order.
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

    /// The batch that this receipt belongs to, whether or not it is still leased,
    /// as long as any message of the batch is. O(log n).
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

    /// The leases of the batch whose first receipt is `first`.
    pub fn of_batch(&self, first: Receipt) -> impl Iterator<Item = Lease> + '_ {
        let last = self.batch_of(first).last;
        self.starting_at(first)
            .take_while(move |lease| lease.receipt <= last)
    }

    /// The leases of the batch of `receipt` that have later receipts.
    pub fn later_of_batch(&self, receipt: Receipt) -> impl Iterator<Item = Lease> + '_ {
        let last = self.batch_of(receipt).last;
        // Most batches have one message, so no search is needed.
        let later = (last > receipt).then(|| self.starting_at(receipt + 1));
        let later = later.into_iter().flatten();
        later.take_while(move |lease| lease.receipt <= last)
    }

    /// Ends a batch if its last lease is gone: call this after the lease with this
    /// receipt was removed. Returns the batch if it has ended.
    pub fn leave_batch(&mut self, receipt: Receipt) -> Option<Batch> {
        let batch = self.batch_of(receipt);
        if batch.count() == 1 {
            return Some(batch);
        }
        let next = self.starting_at(batch.first).next();
        let is_over = next.is_none_or(|lease| lease.receipt > batch.last);
        if is_over {
            let known = self.batches.remove(&batch);
            debug_assert!(known.is_some(), "no index has a batch");
        }
        is_over.then_some(batch)
    }

    /// Bytes allocated. O(1).
    pub fn memory_bytes(&self) -> usize {
        let receipts = self.in_step.memory_bytes() + self.others.memory_bytes();
        receipts + self.others_by_end.memory_bytes() + self.batches.memory_bytes()
    }

    /// The leases in the order of their receipts, from `receipt` on.
    fn starting_at(&self, receipt: Receipt) -> impl Iterator<Item = Lease> + '_ {
        let in_step = self
            .in_step
            .iter_behind(move |lease| lease.receipt < receipt);
        let low = Bound::Included(Lease::with(receipt));
        let others = self.others.range_from(low).map(|(lease, ())| lease);
        merged(in_step, others)
    }
}
