//! How many messages one slice of a bulk operation takes, so that it ends in time.

/// The first slice, whose cost nobody knows yet.
const FIRST: u64 = 32;
/// The largest slice, however fast slices are: one that turns out slower still ends soon.
const MOST: u64 = 4096;

/// A number of messages that follows how long slices took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SliceSize(u64);

impl Default for SliceSize {
    fn default() -> SliceSize {
        SliceSize(FIRST)
    }
}

impl SliceSize {
    /// How many the next slice is to take; at least 1.
    pub fn most(self) -> u64 {
        self.0
    }

    /// A slice of that many took `took_us` microseconds and should take `aim_us` at most. The number falls at once, and grows twofold at most.
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
        let mut size = SliceSize::default();
        for _ in 0..10 {
            size.follow(20 + 3 * size.most(), 250);
        }
        assert!((70..=77).contains(&size.most()), "{}", size.most());
    }

    #[test]
    fn it_falls_at_once_and_grows_twofold() {
        let mut size = SliceSize::default();
        size.follow(1, 250);
        assert_eq!(size.most(), 2 * FIRST);
        size.follow(100_000, 250);
        assert_eq!(size.most(), 1);
        size.follow(0, 250);
        assert_eq!(size.most(), 2);
    }

    #[test]
    fn it_has_bounds() {
        let mut size = SliceSize::default();
        for _ in 0..100 {
            size.follow(0, u64::MAX);
        }
        assert_eq!(size.most(), MOST);
        size.follow(u64::MAX, 0);
        assert_eq!(size.most(), 1);
    }
}
