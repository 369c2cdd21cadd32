//! The state of one FETCH: its remaining limits, and the messages that it has taken.

use crate::op::{Delivered, Deliveries, Fetch};
use crate::{ConsumerIx, Millis, Receipt};

/// The state of one FETCH.
pub(super) struct Round<'a> {
    pub fetch: &'a Fetch<'a>,
    pub consumer: ConsumerIx,
    pub now: Millis,
    /// How many more messages the FETCH may take.
    pub left: u64,
    /// How many more payload bytes the FETCH may take.
    pub bytes_left: u64,
    pub next_receipt: Receipt,
    pub given: Deliveries,
    /// The number of expired messages that it has found.
    pub expired: u64,
    /// Groups met on the way of which a limit let out nothing.
    pub passed: u64,
}

/// Maximum number of expired messages that one FETCH moves to dead, so that it does
/// not hold the server. The timer processes the others.
const MOST_EXPIRED: u64 = 1024;
/// Maximum number of groups that one FETCH sends to wait for a limit. The next one goes on.
pub(in crate::queue) const MOST_PASSED: u64 = 1024;
/// Maximum number of deliveries for which room is allocated in advance.
const MOST_RESERVED: u64 = 127;
impl Round<'_> {
    /// The work that the FETCH has done so far. A turn that changes nothing of it must change the
    /// line.
    #[inline]
    pub fn done(&self) -> (u64, u64, u64) {
        (self.left, self.expired, self.passed)
    }

    pub fn goes_on(&self) -> bool {
        self.left > 0 && self.expired < MOST_EXPIRED && self.passed < MOST_PASSED
    }

    /// Whether the FETCH takes one more message. If MAXBYTES refuses the message,
    /// the FETCH ends. `size` is called only where MAXBYTES matters.
    pub fn takes(&mut self, size: impl FnOnce() -> u64) -> bool {
        let is_limited = self.fetch.max_bytes.is_some() && !self.given.is_empty();
        if is_limited && size() > self.bytes_left {
            self.left = 0;
        }
        self.left > 0
    }

    /// Adds a delivery with a payload of `size` bytes.
    pub fn give(&mut self, delivered: Delivered, size: u64) {
        self.left -= 1;
        match self.bytes_left.checked_sub(size) {
            Some(bytes_left) => self.bytes_left = bytes_left,
            None => self.left = 0,
        }
        if self.given.len() == self.given.capacity() {
            self.given
                .reserve(self.left.min(MOST_RESERVED) as usize + 1);
        }
        self.given.push(delivered);
    }
}
