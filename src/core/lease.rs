//! The leases: which message is delivered to someone, and until when.

use std::cmp::Ordering;
use std::ops::Bound;

use super::ordered::{Key, OrderedSet};
use super::{Millis, Receipt, Seq, TimeIndex};

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
/// Receipts only grow: an ordered set of them is full to the last leaf, and
/// takes less than a hash table would.
#[derive(Debug, Clone, Default)]
pub struct Leases {
    by_receipt: OrderedSet<Lease>,
    /// By end and receipt.
    by_end: TimeIndex,
    /// Batches of more than one message of which some still run.
    batches: OrderedSet<Batch>,
}

impl Leases {
    /// How many messages are leased.
    pub fn len(&self) -> usize {
        self.by_receipt.len()
    }

    /// The lease that has this receipt now. O(log n).
    pub fn find(&self, receipt: Receipt) -> Option<Lease> {
        let found = self.by_receipt.find(&Lease::with(receipt));
        found.map(|(lease, ())| lease)
    }

    /// The lease that ends first: when, and its receipt.
    pub fn first_end(&self) -> Option<(Millis, Receipt)> {
        self.by_end.first().map(|(key, ())| key)
    }

    /// All of them, by receipt.
    pub fn iter(&self) -> impl Iterator<Item = Lease> + '_ {
        self.starting_at(0)
    }

    /// By end and receipt.
    pub fn by_end(&self) -> &TimeIndex {
        &self.by_end
    }

    /// The indexes, for freeing.
    pub fn into_indexes(self) -> (OrderedSet<Lease>, TimeIndex) {
        (self.by_receipt, self.by_end)
    }

    /// Takes out some lease, for freeing them all: they are of no other use
    /// afterwards. Its message.
    pub fn pop(&mut self) -> Option<Seq> {
        self.by_end.pop_first();
        let (lease, ()) = self.by_receipt.pop_first()?;
        Some(lease.seq)
    }

    /// Enters a lease, whose receipt is a new one.
    pub fn insert(&mut self, lease: Lease) {
        self.by_receipt.insert(lease, ());
        self.by_end.insert((lease.until, lease.receipt), ());
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
        let (lease, ()) = self.by_receipt.take(&Lease::with(receipt))?;
        self.by_end.remove(&(lease.until, receipt));
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
        let ends = leases.iter().map(|lease| (lease.until, lease.receipt));
        let mut ends: Vec<(Millis, Receipt)> = ends.collect();
        ends.sort_unstable();
        Leases {
            by_receipt: OrderedSet::from_sorted(leases.into_iter().map(|lease| (lease, ()))),
            by_end: TimeIndex::from_sorted(ends.into_iter().map(|key| (key, ()))),
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
        self.starting_at(receipt + 1)
            .take_while(move |lease| lease.receipt <= last)
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
        self.by_receipt.memory_bytes() + self.by_end.memory_bytes() + self.batches.memory_bytes()
    }

    /// The leases from a receipt on.
    fn starting_at(&self, receipt: Receipt) -> impl Iterator<Item = Lease> + '_ {
        let low = Bound::Included(Lease::with(receipt));
        self.by_receipt.range_from(low).map(|(lease, ())| lease)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(receipt: Receipt) -> Lease {
        Lease {
            receipt,
            seq: receipt * 10,
            until: 1000 - receipt,
        }
    }

    #[test]
    fn a_lease_is_found_by_its_receipt_and_by_its_end() {
        let mut leases = Leases::default();
        (1..=500).for_each(|receipt| leases.insert(lease(receipt)));
        assert_eq!(leases.first_end(), Some((500, 500)));
        leases.move_end(lease(500), 2000);
        assert_eq!(leases.first_end(), Some((501, 499)));
        let moved = leases.find(500).unwrap();
        assert_eq!((moved.seq, moved.until), (5000, 2000));
        assert_eq!(leases.take_current(500, 2000), None);
        assert_eq!(leases.take_current(500, 1999), Some(moved));
        assert_eq!((leases.find(500), leases.len()), (None, 499));
        assert_eq!(leases.by_end().len(), 499);
        let seqs: Vec<Seq> = std::iter::from_fn(|| leases.pop()).collect();
        assert_eq!(seqs.len(), 499);
        assert_eq!(leases.by_end().len(), 0);
    }

    #[test]
    fn a_batch_is_over_with_the_last_of_its_leases() {
        let mut leases = Leases::default();
        (1..=6).for_each(|receipt| leases.insert(lease(receipt)));
        leases.open_batch(Batch::new(2, 3));
        leases.open_batch(Batch::new(5, 1));
        let batches: Vec<Batch> = leases.batches().collect();
        assert_eq!(batches, [Batch { last: 4, first: 2 }]);
        let firsts = (1..=6).map(|receipt| leases.batch_of(receipt).first);
        assert!(firsts.eq([1, 2, 2, 2, 5, 6]));
        let later = leases.later_of_batch(2).map(|lease| lease.receipt);
        assert!(later.eq([3, 4]));
        for (receipt, is_over) in [(3, false), (2, false), (6, true), (4, true)] {
            assert_eq!(leases.take(receipt), Some(lease(receipt)));
            assert_eq!(leases.leave_batch(receipt).is_some(), is_over, "{receipt}");
        }
        assert_eq!(leases.batches().count(), 0);
    }
}
