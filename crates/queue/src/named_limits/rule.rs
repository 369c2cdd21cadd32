//! The rule of a limit.

use smallvec::SmallVec;

use crate::limits::{ensure, exact, name, rate, Invalid};
use crate::settings::Rate;

/// The most windows of a limit.
pub const MAX_WINDOWS: usize = 4;

/// The rule that DQ.LIMIT gave a name, or all names that match a pattern.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LimitRule {
    /// The number, or the sum of costs, that may run at once; 0 for any number.
    pub concurrency: u64,
    /// Whether `concurrency` counts the costs of the messages, and not their number.
    pub weighted: bool,
    /// The number, or the sum of costs, that may begin within each window.
    pub rates: SmallVec<[Rate; 1]>,
}

impl LimitRule {
    /// Whether it has no restrictions.
    pub fn is_open(&self) -> bool {
        self.concurrency == 0 && self.rates.is_empty()
    }

    /// The largest cost that the rule ever allows.
    pub fn most(&self) -> u64 {
        let rates = self.rates.iter().map(|rate| rate.count);
        let running = (self.weighted && self.concurrency > 0).then_some(self.concurrency);
        rates.chain(running).min().unwrap_or(u64::MAX)
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
            !self.weighted || self.concurrency > 0,
            "WEIGHT of a limit needs CONCURRENCY",
        )?;
        self.rates.iter().copied().try_for_each(rate)
    }
}

/// Whether a name matches a pattern, in which `*` stands for any bytes.
/// O(length of both), as no `*` is tried again once a later one matches.
pub fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut of_name) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while of_name < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at + 1, of_name));
                at += 1;
            }
            Some(byte) if Some(byte) == name.get(of_name) => {
                at += 1;
                of_name += 1;
            }
            _ => match star {
                Some((behind, tried)) => {
                    at = behind;
                    of_name = tried + 1;
                    star = Some((behind, tried + 1));
                }
                None => return false,
            },
        }
    }
    let rest = pattern.get(at..).unwrap_or_default();
    rest.iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_bytes() {
        for (pattern, name, is) in [
            ("user-*", "user-", true),
            ("user-*", "user-7", true),
            ("user-*", "user", false),
            ("*", "", true),
            ("*-eu", "a-eu-eu", true),
            ("*-eu", "a-eu-us", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("**", "x", true),
            ("x", "x", true),
            ("x", "xx", false),
        ] {
            assert_eq!(
                matches(pattern.as_bytes(), name.as_bytes()),
                is,
                "{pattern}"
            );
        }
    }
}
