//! A list of leases that is ordered both by receipt and by end.
//!
//! This holds as long as each lease ends no earlier than those before it, which is
//! so for leases of one length. It saves a second index: 15 bytes for each lease.

use std::collections::VecDeque;

use super::Lease;
use crate::IS_SMALL;
use crate::{Millis, Receipt};

/// Maximum number of leases in a run; one bit each in `Run::present`.
const RUN: usize = if IS_SMALL { 8 } else { 64 };
/// A run is packed when at most 1/`THIN` of its slots are taken.
const THIN: usize = 4;
/// A run with at most this capacity is not worth packing.
const FEW: usize = 4;

/// Leases in the order of their receipts, which is also the order of their ends.
///
/// Leases are added at the end and removed anywhere. They are stored in runs, and
/// removing one leaves an empty slot: nothing is moved until most slots of a run
/// are empty.
#[derive(Debug, Default)]
pub struct Series {
    /// The runs in order. If there is any lease, the first run is not empty; nor is
    /// the one before the last.
    runs: VecDeque<Run>,
    len: usize,
    /// How many runs are empty, the last one not counted.
    empty: usize,
    /// The capacity of all runs together, in leases.
    room: usize,
    /// The slot behind the lease that was removed last, as number of the run and
    /// index in it. Leases are mostly removed in order, so the next one is usually
    /// here.
    next: (usize, usize),
}

#[derive(Debug)]
struct Run {
    /// The first lease that was added. All leases of the run have at least its
    /// receipt and end.
    head: Lease,
    /// A bit for each slot that is taken. The last slot is always taken.
    present: u64,
    /// How many slots are taken, to save counting the bits.
    len: usize,
    leases: Vec<Lease>,
}

impl Series {
    /// The number of leases. O(1).
    pub fn len(&self) -> usize {
        self.len
    }

    /// The first lease. O(1).
    #[inline]
    pub fn first(&self) -> Option<Lease> {
        let run = self.runs.front()?;
        run.at(run.present.trailing_zeros() as usize)
    }

    /// Adds a lease if its receipt is above those of all others and its end is no
    /// earlier. Returns whether it did. O(1).
    #[inline]
    pub fn push(&mut self, lease: Lease) -> bool {
        if !self.is_last(&lease) {
            return false;
        }
        if self.runs.back().is_none_or(|run| run.leases.len() == RUN) {
            self.begin_run(lease);
        }
        if let Some(run) = self.runs.back_mut() {
            let room = run.leases.capacity();
            run.push(lease);
            self.room += run.leases.capacity() - room;
            self.len += 1;
        }
        true
    }

    /// The lease with this receipt. O(log n).
    pub fn find(&self, receipt: Receipt) -> Option<Lease> {
        let (number, at) = self.place_of(receipt)?;
        self.runs.get(number)?.at(at)
    }

    /// Removes and returns the lease with this receipt. O(log n); O(1) for the
    /// lease behind the one that was removed before.
    #[inline]
    pub fn take(&mut self, receipt: Receipt) -> Option<Lease> {
        let (number, at) = self.place_of(receipt)?;
        let run = self.runs.get_mut(number)?;
        let lease = run.take(at)?;
        self.len -= 1;
        self.next = (number, at + 1);
        if run.is_thin() {
            self.tidy(number);
        }
        Some(lease)
    }

    /// Moves the ends that are before `to` to `to`. They are those at the front, so the
    /// order stays. O(k) for k such leases.
    pub fn end_not_before(&mut self, to: Millis) {
        for run in &mut self.runs {
            if run.head.until >= to {
                return;
            }
            run.head.until = to;
            for lease in &mut run.leases {
                lease.until = lease.until.max(to);
            }
        }
    }

    /// The leases in order, without the first ones, for which `is_before` holds. It must
    /// not hold for a lease behind one for which it does not. O(log n) to start, then
    /// O(1) each.
    pub fn iter_behind(
        &self,
        is_before: impl Fn(&Lease) -> bool,
    ) -> impl Iterator<Item = Lease> + '_ {
        let begun = self.runs.partition_point(|run| is_before(&run.head));
        let mut runs = self.runs.range(begun.saturating_sub(1)..);
        let first = runs.next().map(|run| {
            let from = run.leases.partition_point(is_before);
            run.iter_from(from)
        });
        let others = runs.flat_map(|run| run.iter_from(0));
        first.into_iter().flatten().chain(others)
    }

    /// The leases at the front for which `is_before` holds, the last of them first.
    /// It must not hold for a lease behind one for which it does not. O(log n) to
    /// start, then O(1) each.
    pub fn back_from(
        &self,
        is_before: impl Fn(&Lease) -> bool,
    ) -> impl Iterator<Item = Lease> + '_ {
        let begun = self.runs.partition_point(|run| is_before(&run.head));
        let mut runs = self.runs.range(..begun).rev();
        let last = runs.next().map(|run| {
            let until = run.leases.partition_point(is_before);
            run.iter_back(until)
        });
        let others = runs.flat_map(|run| run.iter_back(run.leases.len()));
        last.into_iter().flatten().chain(others)
    }

    /// Drops runs from the front with room for at least `most` leases. Returns for
    /// how many they had room, or 0 if nothing is left. Only for freeing in slices:
    /// the series must not be used for anything else afterwards.
    pub fn drain_some(&mut self, most: usize) -> usize {
        let runs = self.runs.len().min(most.div_ceil(RUN));
        self.runs.drain(..runs);
        runs * RUN
    }

    /// Bytes allocated. O(1).
    pub fn memory_bytes(&self) -> usize {
        self.room * size_of::<Lease>() + self.runs.capacity() * size_of::<Run>()
    }

    /// Checks the invariants.
    #[cfg(test)]
    pub fn check(&self) {
        let runs: Vec<&Run> = self.runs.iter().collect();
        for run in &runs {
            assert_eq!(run.present.count_ones() as usize, run.len, "{run:?}");
            let taken = u64::BITS - run.present.leading_zeros();
            assert_eq!(run.leases.len(), taken as usize, "{run:?}");
        }
        let sum = |of: fn(&Run) -> usize| runs.iter().copied().map(of).sum::<usize>();
        assert_eq!(self.len, sum(|run| run.len));
        assert_eq!(self.room, sum(|run| run.leases.capacity()));
        let Some((last, others)) = runs.split_last() else {
            return;
        };
        assert!(others.iter().all(|run| run.len == 0 || !run.is_thin()));
        let empty = others.iter().filter(|run| run.len == 0).count();
        assert_eq!(self.empty, empty);
        assert!(empty <= runs.len() / 2);
        assert!(others.first().is_none_or(|run| run.len > 0));
        assert!(others.last().is_none_or(|run| run.len > 0));
        assert!(last.len > 0 || !others.is_empty() || self.room <= FEW);
    }

    /// The slot of the lease with this receipt: the number of its run, and the
    /// index in that.
    #[inline]
    fn place_of(&self, receipt: Receipt) -> Option<(usize, usize)> {
        let (number, at) = self.next;
        let next = self.runs.get(number).and_then(|run| run.at(at));
        if next.is_some_and(|next| next.receipt == receipt) {
            return Some(self.next);
        }
        let begun = self.runs.partition_point(|run| run.head.receipt <= receipt);
        let number = begun.checked_sub(1)?;
        let run = self.runs.get(number)?;
        let at = run.leases.partition_point(|lease| lease.receipt < receipt);
        let found = run.at(at).filter(|lease| lease.receipt == receipt);
        found.map(|_| (number, at))
    }

    /// Whether a lease can be added behind all others.
    #[inline]
    fn is_last(&self, lease: &Lease) -> bool {
        let last = self.runs.back().and_then(|run| run.leases.last());
        let last = last.or_else(|| {
            // The last run may be empty, but not the one before it.
            let before = self.runs.len().checked_sub(2)?;
            self.runs.get(before)?.leases.last()
        });
        last.is_none_or(|last| last.receipt < lease.receipt && last.until <= lease.until)
    }

    #[inline(never)]
    fn begin_run(&mut self, head: Lease) {
        if self.runs.capacity() == 0 {
            // Most queues never need a second run.
            self.runs.reserve_exact(1);
        }
        // After a full run, more leases will probably follow, so the room is allocated at once.
        let room = if self.runs.is_empty() { 0 } else { RUN };
        let run = Run {
            head,
            present: 0,
            len: 0,
            leases: Vec::with_capacity(room),
        };
        self.room += run.leases.capacity();
        self.runs.push_back(run);
    }

    /// Frees memory of a run of which most slots are empty.
    #[inline(never)]
    fn tidy(&mut self, number: usize) {
        if self.len == 0 {
            if self.runs.capacity() > 1 || self.room > FEW {
                *self = Series::default();
            }
            return;
        }
        let is_last = number + 1 == self.runs.len();
        let Some(run) = self.runs.get_mut(number) else {
            return;
        };
        if is_last && run.len == 0 {
            // The last run keeps its capacity for the leases to come.
            return;
        }
        self.room -= run.leases.capacity();
        // Only the last run is filled further, so it keeps some capacity.
        run.pack(if is_last { run.len } else { 0 });
        self.room += run.leases.capacity();
        self.next = (number, 0);
        if run.len == 0 {
            self.empty += 1;
            self.drop_empty_runs();
        }
    }

    /// Drops empty runs at the front and before the last one, and all others once
    /// more than half of the runs are empty.
    fn drop_empty_runs(&mut self) {
        let before = self.runs.len();
        let is_empty = |run: Option<&Run>| run.is_some_and(|run| run.len == 0);
        while is_empty(self.runs.front()) {
            self.runs.pop_front();
        }
        let first = before - self.runs.len();
        while let Some(at) = self.runs.len().checked_sub(2) {
            if !is_empty(self.runs.get(at)) {
                break;
            }
            self.runs.remove(at);
        }
        self.empty -= before - self.runs.len();
        self.next.0 = self.next.0.saturating_sub(first);
        if self.empty > self.runs.len() / 2 {
            // The last run keeps its capacity for the leases to come.
            let mut after = (0..self.runs.len()).rev();
            self.runs
                .retain(|run| after.next() == Some(0) || run.len > 0);
            self.empty = 0;
        }
        if self.runs.len() * THIN < self.runs.capacity() {
            self.runs.shrink_to(self.runs.len() * 2);
        }
    }
}

impl Clone for Series {
    fn clone(&self) -> Series {
        let mut copy = Series::default();
        for lease in self.iter_behind(|_| false) {
            copy.push(lease);
        }
        copy
    }
}

impl Run {
    /// The lease in this slot, if the slot is taken.
    #[inline]
    fn at(&self, at: usize) -> Option<Lease> {
        let lease = self.leases.get(at)?;
        (self.present >> at & 1 == 1).then_some(*lease)
    }

    /// Adds a lease to a run that is not full.
    #[inline]
    fn push(&mut self, lease: Lease) {
        if self.len == 0 {
            self.head = lease;
        }
        self.present |= 1 << self.leases.len();
        self.len += 1;
        self.leases.push(lease);
    }

    #[inline]
    fn take(&mut self, at: usize) -> Option<Lease> {
        let lease = self.at(at)?;
        self.present &= !(1 << at);
        self.len -= 1;
        if at + 1 == self.leases.len() {
            let taken = u64::BITS - self.present.leading_zeros();
            self.leases.truncate(taken as usize);
        }
        Some(lease)
    }

    /// Whether the run has so much unused capacity that it should be freed.
    #[inline]
    fn is_thin(&self) -> bool {
        let room = self.leases.capacity();
        self.len == 0 || room > FEW && self.len * THIN <= room
    }

    /// Removes empty slots, and keeps capacity for `more` leases.
    fn pack(&mut self, more: usize) {
        let mut positions = 0..;
        let present = self.present;
        let is_taken = |at: u32| present >> at & 1 == 1;
        self.leases
            .retain(|_| positions.next().is_some_and(is_taken));
        self.present = (1 << self.len) - 1;
        self.leases.shrink_to(self.len + more);
    }

    /// The leases in the slots before `until`, the last one first.
    fn iter_back(&self, until: usize) -> impl Iterator<Item = Lease> + '_ {
        (0..until).rev().filter_map(|at| self.at(at))
    }

    fn iter_from(&self, from: usize) -> impl Iterator<Item = Lease> + '_ {
        (from..self.leases.len()).filter_map(|at| self.at(at))
    }
}
