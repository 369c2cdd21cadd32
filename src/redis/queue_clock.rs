//! The queue clock. It never goes back and never stops.
//!
//! It follows the wall clock forward, because machines must agree on due times. When the wall clock
//! steps back, leases must not become longer, and messages that are due must not have to wait until
//! the wall clock shows the same time again. So the queue clock goes on from where it was, at half
//! the speed of the monotonic clock, until the wall clock has caught up.

/// The state of the clock. All times are in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueClock {
    /// The latest time it has shown.
    shown: u64,
    /// Where it got ahead of the wall clock, if it is ahead.
    ahead: Option<Ahead>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ahead {
    /// The time that the queue clock showed then.
    from: u64,
    /// The time of the monotonic clock then.
    since: u64,
}

impl QueueClock {
    /// A clock that has shown nothing yet.
    pub const fn new() -> Self {
        QueueClock {
            shown: 0,
            ahead: None,
        }
    }

    /// Returns the time, given the times of the wall clock and of the monotonic clock. The latter
    /// is read only while the wall clock is behind.
    #[inline]
    pub fn read(&mut self, wall_us: u64, monotonic_us: impl FnOnce() -> u64) -> u64 {
        if self.ahead.is_none() && wall_us >= self.shown {
            self.shown = wall_us;
            return wall_us;
        }
        self.read_ahead(wall_us, monotonic_us())
    }

    #[cold]
    fn read_ahead(&mut self, wall_us: u64, monotonic_us: u64) -> u64 {
        let ahead = *self.ahead.get_or_insert(Ahead {
            from: self.shown,
            since: monotonic_us,
        });
        let elapsed = monotonic_us.saturating_sub(ahead.since);
        let slowed = ahead.from.saturating_add(elapsed / 2);
        if wall_us >= slowed {
            self.ahead = None;
        }
        self.shown = self.shown.max(slowed).max(wall_us);
        self.shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000;

    #[test]
    fn the_clock_follows_the_wall_clock_forward() {
        let mut clock = QueueClock::new();
        assert_eq!(clock.read(10 * SECOND, || 0), 10 * SECOND);
        assert_eq!(clock.read(11 * SECOND, || 0), 11 * SECOND);
        assert_eq!(clock.read(3600 * SECOND, || 0), 3600 * SECOND);
    }

    #[test]
    fn after_a_step_back_the_clock_runs_at_half_speed_until_the_wall_clock_catches_up() {
        let mut clock = QueueClock::new();
        clock.read(100 * SECOND, || 0);
        assert_eq!(clock.read(90 * SECOND, || 5 * SECOND), 100 * SECOND);
        assert_eq!(clock.read(94 * SECOND, || 9 * SECOND), 102 * SECOND);
        assert_eq!(clock.read(108 * SECOND, || 23 * SECOND), 109 * SECOND);
        assert_eq!(clock.read(110 * SECOND, || 25 * SECOND), 110 * SECOND);
        assert_eq!(clock.read(111 * SECOND, || 26 * SECOND), 111 * SECOND);
    }

    #[test]
    fn after_a_second_step_back_the_clock_still_goes_on_from_its_own_time() {
        let mut clock = QueueClock::new();
        clock.read(100 * SECOND, || 0);
        clock.read(90 * SECOND, || 0);
        assert_eq!(clock.read(50 * SECOND, || 2 * SECOND), 101 * SECOND);
        assert_eq!(clock.read(52 * SECOND, || 4 * SECOND), 102 * SECOND);
    }

    #[test]
    fn the_monotonic_clock_is_not_read_while_the_wall_clock_goes_forward() {
        let mut clock = QueueClock::new();
        clock.read(SECOND, || unreachable!());
        clock.read(SECOND, || unreachable!());
    }

    proptest! {
        #[test]
        fn the_clock_never_goes_back_and_is_never_behind_the_wall_clock(
            steps in proptest::collection::vec((0u64..2 * SECOND, -5_000_000i64..5_000_000), 1..200)
        ) {
            let mut clock = QueueClock::new();
            let (mut wall, mut monotonic, mut last) = (1_000 * SECOND, 0, 0);
            for (passed, step) in steps {
                monotonic += passed;
                wall = (wall + passed).saturating_add_signed(step);
                let now = clock.read(wall, || monotonic);
                prop_assert!(now >= last && now >= wall);
                last = now;
            }
        }
    }
}
