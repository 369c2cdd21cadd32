//! The changes that time makes to a queue before an operation.

use crate::Millis;

/// The changes that were made to a queue before an operation on it. Replicas do the same,
/// by the numbers here and not by their own clocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Before {
    /// By how many ms the clock of the queue was set back, because it was too far ahead
    /// of the server's. 0 if it was not.
    pub cut: Millis,
    /// Leases that would have ended before this time (Unix ms) end at this time. 0 if
    /// none was spared.
    pub spare: Millis,
    /// Whether no schedule fired in the steps, because fire times were missed or the server had
    /// no memory for their messages.
    pub without_fires: bool,
    /// How many due events were processed.
    pub steps: u64,
}

impl Before {
    /// Whether no change was made.
    pub fn is_nothing(&self) -> bool {
        *self == Before::default()
    }

    /// Whether due events were processed at most.
    pub fn is_plain(&self) -> bool {
        self.cut == 0 && self.spare == 0 && !self.without_fires
    }
}

impl From<u64> for Before {
    /// This many due events were processed, and no other change was made.
    fn from(steps: u64) -> Before {
        Before {
            steps,
            ..Before::default()
        }
    }
}
