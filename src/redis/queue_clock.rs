//! The clock of the server, as the queues see it.
//!
//! It follows the wall clock, because machines must agree on due times. When the wall clock steps
//! back a little, it goes on from where it was, at half the speed of the monotonic clock, until the
//! wall clock has caught up. After a larger step it follows the wall clock at once: each queue that
//! has acted at later times has a lead of its own then (`dq_queue::queue::lead`), and a new queue has
//! none.

/// The largest step back that the clock itself makes up for, in microseconds.
const MOST_AHEAD: u64 = 100_000;

/// The state of the clock. All times are in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueClock {
    /// The time it has shown last.
    shown: u64,
    /// The place at which it got ahead of the wall clock, if it is ahead.
    ahead: Option<Ahead>,
    /// Whether it has gone back since somebody asked.
    was_set_back: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ahead {
    /// The time that the queue clock showed then.
    from: u64,
    /// The time of the monotonic clock then.
    since: u64,
}

impl QueueClock {
    /// A clock that was not read yet.
    pub const fn new() -> Self {
        QueueClock {
            shown: 0,
            ahead: None,
            was_set_back: false,
        }
    }

    /// Whether it has gone back since the last call.
    pub fn take_set_back(&mut self) -> bool {
        std::mem::take(&mut self.was_set_back)
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
        } else if wall_us.saturating_add(MOST_AHEAD) < slowed {
            self.was_set_back |= wall_us < self.shown;
            self.ahead = None;
            self.shown = wall_us;
            return wall_us;
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
    fn after_a_small_step_back_the_clock_runs_at_half_speed_until_the_wall_clock_catches_up() {
        let mut clock = QueueClock::new();
        clock.read(100 * SECOND, || 0);
        let ms = |ms: u64| 100 * SECOND - 100_000 + ms * 1000;
        assert_eq!(clock.read(ms(0), || 5 * SECOND), ms(100));
        assert_eq!(clock.read(ms(40), || 5 * SECOND + 40_000), ms(120));
        assert_eq!(clock.read(ms(180), || 5 * SECOND + 180_000), ms(190));
        assert_eq!(clock.read(ms(200), || 5 * SECOND + 200_000), ms(200));
        assert_eq!(clock.read(ms(210), || 5 * SECOND + 210_000), ms(210));
        assert!(!clock.take_set_back());
    }

    #[test]
    fn after_a_larger_step_back_the_clock_follows_the_wall_clock_and_says_so() {
        let mut clock = QueueClock::new();
        clock.read(100 * SECOND, || 0);
        assert_eq!(clock.read(99 * SECOND, || 0), 99 * SECOND);
        assert!(clock.take_set_back());
        assert!(!clock.take_set_back());
        assert_eq!(clock.read(100 * SECOND, || SECOND), 100 * SECOND);
        // Many small steps are as good as a large one.
        for n in 1..=10 {
            clock.read(100 * SECOND - n * 50_000, || SECOND);
        }
        assert!(clock.take_set_back());
        assert!(clock.read(100 * SECOND - 500_000, || SECOND) <= 100 * SECOND - 400_000);
    }

    #[test]
    fn the_monotonic_clock_is_not_read_while_the_wall_clock_goes_forward() {
        let mut clock = QueueClock::new();
        clock.read(SECOND, || unreachable!());
        clock.read(SECOND, || unreachable!());
    }

    proptest! {
        #[test]
        fn the_clock_is_never_behind_the_wall_clock_and_goes_back_only_with_a_large_step(
            steps in proptest::collection::vec((0u64..2 * SECOND, -5_000_000i64..5_000_000), 1..200)
        ) {
            let mut clock = QueueClock::new();
            let (mut wall, mut monotonic, mut last) = (1_000 * SECOND, 0, 0);
            for (passed, step) in steps {
                monotonic += passed;
                wall = (wall + passed).saturating_add_signed(step);
                let now = clock.read(wall, || monotonic);
                prop_assert!(now >= wall && now <= wall + MOST_AHEAD);
                prop_assert!(now >= last || now == wall);
                prop_assert_eq!(clock.take_set_back(), now < last);
                last = now;
            }
        }
    }
}
