//! Computes how long a failed message waits for its next delivery.

use crate::settings::Backoff;
use crate::{Millis, MAX_EXACT};

/// The wait after the `failures`-th failure (1, 2, ...), in ms, without cap and
/// spread. At most 2^53 - 1.
pub fn wait(backoff: Backoff, failures: u32) -> Millis {
    let wait = match backoff {
        Backoff::Fixed(ms) => ms,
        Backoff::Linear(ms) => ms.saturating_mul(u64::from(failures)),
        Backoff::Exp(ms) => {
            let doublings = failures.saturating_sub(1);
            match ms {
                0 => 0,
                _ if doublings >= 53 => MAX_EXACT,
                ms => ms.saturating_mul(1 << doublings),
            }
        }
    };
    wait.min(MAX_EXACT)
}

/// Spreads a wait in ms by up to `percent` in either direction, then caps it at
/// `cap` ms (0 for no cap). `random` decides where in the spread it falls. At most
/// 2^53 - 1.
pub fn spread(wait: Millis, percent: u8, cap: Millis, random: u64) -> Millis {
    let reach = (u128::from(wait) * u128::from(percent) / 100) as u64;
    let spread = match reach {
        0 => wait,
        reach => {
            let span = u128::from(reach) * 2 + 1;
            let offset = (u128::from(random) * span) >> 64;
            wait - reach + offset as u64
        }
    };
    let capped = if cap > 0 { spread.min(cap) } else { spread };
    capped.min(MAX_EXACT)
}

/// Derives a random number for one message from the one drawn for the whole
/// operation (the finaliser of SplitMix64, public domain).
pub fn mix(seed: u64, seq: u64) -> u64 {
    let mut z = seed ^ seq.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_by_the_kind_of_backoff() {
        assert_eq!(wait(Backoff::Fixed(500), 7), 500);
        assert_eq!(wait(Backoff::Linear(500), 3), 1500);
        assert_eq!(wait(Backoff::Exp(500), 1), 500);
        assert_eq!(wait(Backoff::Exp(500), 4), 4000);
    }

    #[test]
    fn no_wait_exceeds_the_largest_exact_number() {
        for failures in [1, 53, 54, 64, u32::MAX] {
            for ms in [0, 1, MAX_EXACT] {
                for kind in [Backoff::Fixed(ms), Backoff::Linear(ms), Backoff::Exp(ms)] {
                    let wait = wait(kind, failures);
                    assert!(wait <= MAX_EXACT);
                    assert!(spread(wait, 100, 0, u64::MAX) <= MAX_EXACT);
                }
            }
        }
        assert_eq!(wait(Backoff::Exp(0), 60), 0);
    }

    #[test]
    fn the_spread_reaches_both_ends_and_the_cap_is_applied_last() {
        assert_eq!(spread(1000, 10, 0, 0), 900);
        assert_eq!(spread(1000, 10, 0, u64::MAX), 1100);
        assert_eq!(spread(1000, 100, 0, 0), 0);
        assert_eq!(spread(1000, 10, 950, u64::MAX), 950);
        assert_eq!(spread(1000, 0, 0, u64::MAX), 1000);
    }
}
