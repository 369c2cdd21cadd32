//! The due time of a message as its sender gives it.

use crate::Millis;

/// When a message becomes due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DueTime {
    /// The message is due at once.
    #[default]
    Now,
    /// This many ms from now.
    After(Millis),
    /// At this Unix time in ms. A time in the past means now.
    At(Millis),
}

impl DueTime {
    /// The due time in Unix ms, as seen at `now`. A delay ends at 2^53-1 at the
    /// latest.
    pub fn from(self, now: Millis) -> Millis {
        match self {
            DueTime::Now => now,
            DueTime::After(delay) => now.saturating_add(delay).min(crate::MAX_EXACT),
            DueTime::At(at) => at.max(now),
        }
    }
}
