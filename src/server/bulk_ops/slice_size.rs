//! The number of messages in one slice of a bulk operation, chosen so that it ends in time.

/// The size of the first slice, whose cost is unknown.
const FIRST: u64 = 32;
/// The largest size, however fast the slices are, so that a slice that is slower than those before
/// it still ends soon.
const MOST: u64 = 4096;

/// The size of the next slice in messages. It adapts to the time that slices take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SliceSize(u64);

impl Default for SliceSize {
    fn default() -> SliceSize {
        SliceSize(FIRST)
    }
}

impl SliceSize {
    /// The maximum number of messages in the next slice. At least 1.
    pub fn most(self) -> u64 {
        self.0
    }

    /// Adapts the size after a slice of the current size, which took `took_us` microseconds and
    /// should take at most `aim_us`. The size may shrink to any size at once, but grows at most
    /// twofold.
    pub fn follow(&mut self, took_us: u64, aim_us: u64) {
        let fitting = self.0.saturating_mul(aim_us) / took_us.max(1);
        self.0 = fitting.min(2 * self.0).clamp(1, MOST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_converges_to_what_fits_into_the_time() {
        // 3 microseconds for each message, and 20 for the rest of the slice.
        let mut size = SliceSize::default();
        for _ in 0..10 {
            size.follow(20 + 3 * size.most(), 250);
        }
        assert!((70..=77).contains(&size.most()), "{}", size.most());
    }

    #[test]
    fn the_size_shrinks_at_once_and_grows_at_most_twofold() {
        let mut size = SliceSize::default();
        size.follow(1, 250);
        assert_eq!(size.most(), 2 * FIRST);
        size.follow(100_000, 250);
        assert_eq!(size.most(), 1);
        size.follow(0, 250);
        assert_eq!(size.most(), 2);
    }

    #[test]
    fn the_size_is_at_least_one_and_at_most_the_largest() {
        let mut size = SliceSize::default();
        for _ in 0..100 {
            size.follow(0, u64::MAX);
        }
        assert_eq!(size.most(), MOST);
        size.follow(u64::MAX, 0);
        assert_eq!(size.most(), 1);
    }
}
