//! TOUCH: moves the ends of leases.

use crate::op::Done;
use crate::queue::give_back::distinct;
use crate::queue::Queue;
use crate::{Millis, Receipt, MAX_EXACT};

impl Queue {
    /// Sets the end of leases to `ms` from now. Returns how many receipts were
    /// current.
    pub(in crate::queue) fn touch(
        &mut self,
        ms: Millis,
        receipts: &[Receipt],
        now: Millis,
    ) -> Done {
        let until = now.saturating_add(ms).min(MAX_EXACT);
        let mut touched = 0;
        for receipt in distinct(receipts) {
            let Some(lease) = self.current(receipt, now) else {
                continue;
            };
            self.leases.move_end(lease, until);
            self.take_old_end(receipt);
            self.wake_by(until);
            self.effects.changed = true;
            self.effects.visible = true;
            touched += 1;
        }
        Done::Count(touched)
    }
}
