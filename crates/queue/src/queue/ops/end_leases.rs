//! Ends the leases of a connection that has closed.

use crate::op::Done;
use crate::queue::Queue;
use crate::{Millis, Receipt};

impl Queue {
    /// Ends leases as if they had run out now, but their messages wait for their backoff,
    /// as after a nack. Otherwise a message that ends its consumers would go from one to
    /// the next without a pause. Returns how many receipts were current.
    pub(in crate::queue) fn end_leases(&mut self, receipts: &[Receipt], now: Millis) -> Done {
        let mut ended = 0;
        for receipt in receipts {
            if let Some(lease) = self.current(*receipt, now) {
                self.time_out(lease.seq, Some(*receipt), now, self.join(now));
                ended += 1;
            }
        }
        Done::Count(ended)
    }
}
