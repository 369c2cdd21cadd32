//! The end of a schedule, the spread of its messages, and the counts of fire times.

use crate::message::retry::mix;
use crate::sums::Count;
use crate::{Millis, MAX_EXACT};

/// When a schedule ends, and how far its messages are spread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// The schedule has no fire time after this one, in Unix ms.
    pub until: Option<Millis>,
    /// How often it still fires; at least 1. A fire time at which nothing is sent does
    /// not count.
    pub times: Option<u64>,
    /// The greatest delay of a message after its fire time, in ms.
    pub jitter: Millis,
}

impl Limits {
    /// Whether a time lies after the end.
    pub fn is_over_at(&self, at: Millis) -> bool {
        self.until.is_some_and(|until| at > until)
    }

    /// The delay of the message of the schedule `name` after the fire time `at`. Queues
    /// with another salt have other delays.
    pub fn delay(&self, salt: u64, name: &[u8], at: Millis) -> Millis {
        if self.jitter == 0 {
            return 0;
        }
        let seed = name
            .iter()
            .fold(salt, |seed, byte| mix(seed, u64::from(*byte)));
        let choices = u128::from(self.jitter) + 1;
        // The product of a 64-bit number and the choices, without its lower 64 bits, is
        // below the number of choices.
        let delay = ((u128::from(mix(seed, at)) * choices) >> 64) as u64;
        delay.min(MAX_EXACT.saturating_sub(at))
    }
}

/// The limits, the pause and the count of skipped firings, which few schedules have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extras {
    /// When it ends, and how far its messages are spread.
    pub limits: Limits,
    /// If it is paused: its next fire time when it was paused, in Unix ms.
    pub paused: Option<Millis>,
    /// The number of fire times that came at which nothing was sent.
    pub skipped: Count,
}

impl Extras {
    /// Itself in a box, or `None` if it is empty.
    pub fn boxed(self) -> Option<Box<Extras>> {
        (self != Extras::default()).then(|| Box::new(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_fill_their_range_and_depend_on_all_that_is_given() {
        let limits = Limits {
            jitter: 9,
            ..Limits::default()
        };
        let delays = |salt: u64, name: &'static [u8]| {
            let delay = move |at| limits.delay(salt, name, at);
            (0..1000).map(delay).collect::<Vec<_>>()
        };
        let first = delays(1, b"s");
        for delay in 0..=9 {
            let count = first.iter().filter(|one| **one == delay).count();
            assert!((60..140).contains(&count), "{delay}: {count}");
        }
        assert!(first.iter().all(|delay| *delay <= 9));
        assert_eq!(first, delays(1, b"s"));
        assert_ne!(first, delays(2, b"s"));
        assert_ne!(first, delays(1, b"t"));
    }

    #[test]
    fn the_greatest_jitter_gives_no_time_that_is_not_exact() {
        let limits = Limits {
            jitter: MAX_EXACT,
            ..Limits::default()
        };
        for at in [0, 1, MAX_EXACT / 2, MAX_EXACT - 1, MAX_EXACT] {
            assert!(at + limits.delay(7, b"s", at) <= MAX_EXACT);
        }
        assert_eq!(Limits::default().delay(7, b"s", 5), 0);
    }
}
