//! ACK: deliveries that ended well.

use crate::seeded::{seeded, Bug};
use std::borrow::Cow;

use crate::message::state::StoredState;
use crate::op::{Done, Happened};
use crate::queue::Queue;
use crate::{Millis, Receipt};

impl Queue {
    /// Acks deliveries. Returns how many receipts were current. O(log n) each.
    pub(in crate::queue) fn ack(
        &mut self,
        receipts: &[Receipt],
        result: Option<&[u8]>,
        now: Millis,
    ) -> Done {
        let acked = receipts
            .iter()
            .filter(|receipt| self.ack_one(**receipt, result, now))
            .count();
        Done::Count(acked as u64)
    }

    /// Acks deliveries, each with the result at the same position, if there is one.
    /// Returns how many receipts were current. O(log n) each.
    pub(in crate::queue) fn ack_each(
        &mut self,
        receipts: &[Receipt],
        results: &[Cow<'_, [u8]>],
        now: Millis,
    ) -> Done {
        let mut results = results.iter();
        let acked = receipts
            .iter()
            .filter(|receipt| self.ack_one(**receipt, results.next().map(|text| &**text), now))
            .count();
        Done::Count(acked as u64)
    }

    /// Acks deliveries like [`Queue::ack`], and corrects the cost of each to the real one.
    pub(in crate::queue) fn ack_cost(
        &mut self,
        receipts: &[Receipt],
        cost: u64,
        result: Option<&[u8]>,
        now: Millis,
    ) -> Done {
        let mut acked = 0;
        for receipt in receipts {
            if let Some(lease) = self.current(*receipt, now) {
                self.correct_cost(lease.seq, cost);
                self.settle_cost(lease.seq, cost);
                acked += u64::from(self.ack_one(*receipt, result, now));
            }
        }
        Done::Count(acked)
    }

    /// Acks one delivery. Returns whether its receipt was current.
    pub(in crate::queue) fn ack_one(
        &mut self,
        receipt: Receipt,
        result: Option<&[u8]>,
        now: Millis,
    ) -> bool {
        let Some(lease) = self.state.leases.take_current(receipt, now) else {
            return false;
        };
        let Some(ended) = self.end_lease(lease) else {
            return false;
        };
        let (seq, group) = (lease.seq, ended.group);
        self.state.consumers.ack(ended.consumer);
        if let Some(result) = result {
            self.state.store.with(seq, |message| {
                message.extension_mut().texts_mut().result = Some(result.into());
            });
        }
        if !seeded(Bug::AckKeepsBytes) {
            self.indexes.bytes -= ended.size;
        }
        self.state.totals.acked += 1;
        self.notes.effects.changed = true;
        self.notes.effects.visible = true;
        self.notes.effects.happened.add(Happened::ACKED);
        self.end(seq, StoredState::Finished, now);
        if ended.was_probe {
            self.close_breaker(group);
        }
        if group.is_some() && !seeded(Bug::AckKeepsPlace) {
            self.refresh(group, now, self.join(now));
        }
        true
    }
}
