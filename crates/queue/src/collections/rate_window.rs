//! A limit on deliveries: at most a given number in any window of a given length.

// Clients choose what is summed here: by the types of `sums`, or saturating.
#![warn(clippy::arithmetic_side_effects)]

use std::collections::VecDeque;

use crate::collections::footprint::array;
use crate::settings::Rate;
use crate::sums::{Count, Sum};
use crate::Millis;

/// The deliveries within the last window: when, and how many in that millisecond.
/// Each is counted for exactly `per` ms, the length of the window.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RateWindow {
    given: VecDeque<(Millis, Count)>,
    total: Sum,
}

impl RateWindow {
    /// Restores a window from a snapshot. `given` are deliveries, oldest first.
    pub fn from_given(given: impl IntoIterator<Item = (Millis, u64)>) -> RateWindow {
        let mut all: VecDeque<(Millis, Count)> = VecDeque::new();
        for (at, n) in given {
            match all.back_mut() {
                Some((before, count)) if *before == at => *count += n,
                _ => all.push_back((at, Count::of(n))),
            }
        }
        let given = all;
        let total = given.iter().map(|(_, n)| n.get()).collect();
        RateWindow { given, total }
    }

    /// The bytes that the window has allocated. O(1).
    pub fn heap_bytes(&self) -> usize {
        array::<(Millis, Count)>(self.given.capacity())
    }

    /// The deliveries that are stored, oldest first.
    pub fn given(&self) -> impl ExactSizeIterator<Item = (Millis, u64)> + DoubleEndedIterator + '_ {
        self.given.iter().map(|(at, n)| (*at, n.get()))
    }

    /// How many more deliveries `rate` allows at `now`. O(1) amortised: deliveries
    /// that have left the window are dropped by the next [`RateWindow::count`].
    pub fn free(&self, rate: Rate, now: Millis) -> u64 {
        self.used(rate, now).room_to(rate.count)
    }

    /// When the next delivery is allowed: `now`, or a later time.
    pub fn next_free(&self, rate: Rate, now: Millis) -> Millis {
        match self.free(rate, now) {
            0 => self.room_at(rate, 1),
            _ => now,
        }
    }

    /// When a delivery that counts as `n` is allowed (Unix ms), if nothing else is counted
    /// until then; a past time if it is allowed now. `n` must be within the rate. O(n).
    pub fn room_at(&self, rate: Rate, n: u64) -> Millis {
        let most = rate.count.saturating_sub(n);
        let mut left = self.total;
        let mut at = 0;
        for (begun, counted) in &self.given {
            if left.is_within(most) {
                break;
            }
            left -= counted.get();
            at = begun.saturating_add(rate.per);
        }
        at
    }

    /// Changes the count of the deliveries of one millisecond, if they are stored: from
    /// `before` to `after`. O(log n).
    pub fn correct(&mut self, at: Millis, before: u64, after: u64) {
        let Ok(found) = self.given.binary_search_by_key(&at, |(at, _)| *at) else {
            return;
        };
        if let Some((_, counted)) = self.given.get_mut(found) {
            self.total -= counted.get();
            *counted = Count::of(counted.get().saturating_sub(before).saturating_add(after));
            self.total += counted.get();
        }
    }

    /// Counts `n` deliveries at `now`, which must not be earlier than the last deliveries.
    pub fn count(&mut self, rate: Rate, now: Millis, n: u64) {
        while let Some((at, gone)) = self.given.front().copied() {
            if in_window(at, rate, now) {
                break;
            }
            self.total -= gone.get();
            self.given.pop_front();
        }
        match self.given.back_mut() {
            Some((at, count)) if *at == now => {
                self.total -= count.get();
                *count += n;
                self.total += count.get();
            }
            _ => {
                let count = Count::of(n);
                self.total += count.get();
                self.given.push_back((now, count));
            }
        }
    }

    /// Whether no delivery is stored.
    pub fn is_empty(&self) -> bool {
        self.given.is_empty()
    }

    /// Drops all deliveries.
    pub fn clear(&mut self) {
        *self = RateWindow::default();
    }

    fn used(&self, rate: Rate, now: Millis) -> Sum {
        let given = self.given.iter();
        let left = given.take_while(|(at, _)| !in_window(*at, rate, now));
        left.fold(self.total, |mut used, (_, n)| {
            used -= n.get();
            used
        })
    }
}

fn in_window(at: Millis, rate: Rate, now: Millis) -> bool {
    at.saturating_add(rate.per) > now
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate { count: 3, per: 100 };

    #[test]
    fn a_delivery_counts_for_exactly_one_window() {
        let mut w = RateWindow::default();
        assert_eq!(w.free(RATE, 0), 3);
        w.count(RATE, 10, 2);
        w.count(RATE, 50, 1);
        assert_eq!(w.free(RATE, 50), 0);
        assert_eq!(w.next_free(RATE, 50), 110);
        assert_eq!(w.free(RATE, 109), 0);
        assert_eq!(w.free(RATE, 110), 2);
        assert_eq!(w.next_free(RATE, 110), 110);
        w.count(RATE, 110, 2);
        assert_eq!(w.next_free(RATE, 110), 150);
    }

    #[test]
    fn a_lowered_rate_counts_earlier_deliveries_too() {
        let mut w = RateWindow::default();
        w.count(RATE, 0, 3);
        let lower = Rate { count: 2, per: 100 };
        assert_eq!(w.free(lower, 50), 0);
        assert_eq!(w.next_free(lower, 50), 100);
    }
}
