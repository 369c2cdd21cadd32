//! How many things a slice takes, so that it ends in time.

/// The first slice, whose cost nobody knows yet.
const FIRST: u64 = 32;
/// However fast they go: a slice that turns out slower ends soon, too.
const MOST: u64 = 4096;

/// A number that follows what slices took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace(u64);

impl Default for Pace {
    fn default() -> Pace {
        Pace(FIRST)
    }
}

impl Pace {
    /// How many the next slice is to take; at least 1.
    pub fn most(self) -> u64 {
        self.0
    }

    /// A slice of that many took so many microseconds and was to take `aim_us` at
    /// most. The number falls at once, and grows twofold at most.
    pub fn follow(&mut self, took_us: u64, aim_us: u64) {
        let fitting = self.0.saturating_mul(aim_us) / took_us.max(1);
        self.0 = fitting.min(2 * self.0).clamp(1, MOST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_finds_the_number_that_fits() {
        // Three microseconds each, and 20 for whatever else there is.
        let mut pace = Pace::default();
        for _ in 0..10 {
            pace.follow(20 + 3 * pace.most(), 250);
        }
        assert!((70..=77).contains(&pace.most()), "{}", pace.most());
    }

    #[test]
    fn it_falls_at_once_and_grows_twofold() {
        let mut pace = Pace::default();
        pace.follow(1, 250);
        assert_eq!(pace.most(), 2 * FIRST);
        pace.follow(100_000, 250);
        assert_eq!(pace.most(), 1);
        pace.follow(0, 250);
        assert_eq!(pace.most(), 2);
    }

    #[test]
    fn it_has_bounds() {
        let mut pace = Pace::default();
        for _ in 0..100 {
            pace.follow(0, u64::MAX);
        }
        assert_eq!(pace.most(), MOST);
        pace.follow(u64::MAX, 0);
        assert_eq!(pace.most(), 1);
    }
}
