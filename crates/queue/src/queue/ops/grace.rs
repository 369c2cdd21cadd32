//! GRACE: leases whose connection has closed end some time later.

use crate::op::{Delivered, Done};
use crate::queue::delivery::give_back::distinct;
use crate::queue::Queue;
use crate::seeded::{seeded, Bug};
use crate::{Millis, Receipt};

/// From this number of remembered ends on, the ends of leases that have ended meanwhile
/// are dropped.
const MIN_CLEANUP: usize = 64;

impl Queue {
    /// Makes leases end `ms` from now, unless they end before that, and remembers
    /// their old ends. Returns how many leases it has shortened.
    pub(in crate::queue) fn grace(
        &mut self,
        ms: Millis,
        receipts: &[Receipt],
        now: Millis,
    ) -> Done {
        let until = now.saturating_add(ms);
        let mut shortened = 0;
        for receipt in distinct(receipts) {
            let lease = self.current(receipt, now);
            let Some(lease) = lease.filter(|lease| lease.until > until) else {
                continue;
            };
            self.move_lease_end(lease, until);
            if !seeded(Bug::GraceWakesLate) {
                self.wake_by(until);
            }
            self.state
                .seldom
                .old_ends
                .entry(receipt)
                .or_insert(lease.until);
            self.changed();
            shortened += 1;
        }
        self.drop_stale_ends();
        Done::Count(shortened)
    }

    /// Restores the ends of these deliveries' leases that a closed connection has
    /// shortened.
    pub(in crate::queue) fn restore_ends(&mut self, given: &[Delivered], now: Millis) {
        for one in given {
            let Some(end) = self.take_old_end(one.receipt) else {
                continue;
            };
            if let Some(lease) = self.current(one.receipt, now) {
                self.move_lease_end(lease, end);
                self.wake_by(end);
                self.changed();
            }
        }
    }

    /// Forgets the end that a lease had before its connection closed. Returns that
    /// end, if there is one.
    pub(in crate::queue) fn take_old_end(&mut self, receipt: Receipt) -> Option<Millis> {
        let ends = &mut self.state.seldom.used_mut()?.old_ends;
        ends.used_mut()?.remove(&receipt)
    }

    /// Whether a closed connection has shortened this lease.
    pub(in crate::queue) fn is_shortened(&self, receipt: Receipt) -> bool {
        self.state.seldom.old_ends.contains_key(&receipt)
    }

    /// Ends that leases had before their connections closed, by receipt.
    pub(in crate::queue) fn old_ends(&self) -> impl Iterator<Item = (Receipt, Millis)> + '_ {
        let ends = self.state.seldom.old_ends.iter();
        ends.map(|(receipt, end)| (*receipt, *end))
            .filter(|(receipt, _)| self.is_running(*receipt))
    }

    /// Drops the remembered ends of leases that have ended, if there are many.
    fn drop_stale_ends(&mut self) {
        let count = self.state.seldom.old_ends.len();
        if count >= MIN_CLEANUP && count / 2 >= self.state.leases.len() {
            self.state
                .seldom
                .old_ends
                .retain(|receipt, _| self.state.leases.find(*receipt).is_some());
        }
    }
}
