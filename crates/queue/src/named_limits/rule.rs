//! The rule of a limit.

use smallvec::SmallVec;

use crate::collections::footprint::allocated;
use crate::limits::{ensure, exact, name, rate, Invalid};
use crate::settings::Rate;

/// The most windows of a limit.
pub const MAX_WINDOWS: usize = 4;

/// The rule that DQ.LIMIT gave a name, or all names that match a pattern.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LimitRule {
    /// The number, or the sum of costs, that may run at once; 0 for any number.
    pub concurrency: u64,
    /// Whether the rule counts the costs of the messages (WEIGHT), and not their number.
    pub weighted: bool,
    /// The number, or the sum of costs, that may begin within each window.
    pub rates: SmallVec<[Rate; 1]>,
}

impl LimitRule {
    /// Bytes allocated for a rule that limits share, behind its two counts.
    pub(super) fn memory_bytes(&self) -> usize {
        let spilled = match self.rates.spilled() {
            true => allocated(self.rates.capacity() * size_of::<Rate>()),
            false => 0,
        };
        allocated(2 * size_of::<usize>() + size_of::<LimitRule>()) + spilled
    }

    /// Whether it has no restrictions.
    pub fn is_open(&self) -> bool {
        self.concurrency == 0 && self.rates.is_empty()
    }

    /// The largest cost that the rule ever allows. Without WEIGHT it allows any.
    pub fn most(&self) -> u64 {
        let rates = self.rates.iter().map(|rate| rate.count);
        let running = (self.concurrency > 0).then_some(self.concurrency);
        let most = rates.chain(running).min();
        most.filter(|_| self.weighted).unwrap_or(u64::MAX)
    }

    /// The amount that one message of this cost takes.
    pub(super) fn amount(&self, cost: u64) -> u64 {
        match self.weighted {
            true => cost,
            false => 1,
        }
    }

    /// Checks the rule of the limit, or of the pattern, with this name.
    pub fn check(&self, of: &[u8]) -> Result<(), Invalid> {
        name(of)?;
        exact(self.concurrency)?;
        ensure(
            self.rates.len() <= MAX_WINDOWS,
            "a limit must have at most 4 windows",
        )?;
        ensure(
            !self.weighted || !self.is_open(),
            "WEIGHT of a limit needs CONCURRENCY or RATE",
        )?;
        self.rates.iter().copied().try_for_each(rate)
    }
}
