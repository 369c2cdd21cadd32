//! Counts and sums to which clients, dumps and log entries add numbers.
//!
//! A bare `+` could leave the range that a snapshot may hold, or go round. These types add in
//! one way everywhere, and the compiler finds an addition that is not theirs.

use std::ops::{AddAssign, Sub, SubAssign};

use crate::MAX_EXACT;

/// A count that only grows and stops at 2^53-1, the most that a client can read exactly and a
/// snapshot may hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Count(u64);

impl Count {
    /// A count of `n`, or of 2^53-1 if that is less.
    pub fn of(n: u64) -> Count {
        Count(n.min(MAX_EXACT))
    }

    /// The count: 0 to 2^53-1.
    pub fn get(self) -> u64 {
        self.0
    }
}

impl AddAssign<u64> for Count {
    #[inline]
    fn add_assign(&mut self, n: u64) {
        *self = Count::of(self.0.saturating_add(n));
    }
}

impl Sub for Count {
    type Output = u64;

    /// How much was added since the count was `before`.
    fn sub(self, before: Count) -> u64 {
        self.0.saturating_sub(before.0)
    }
}

/// A sum from which each number is taken out again later. It is exact, so what is left does not
/// depend on the order of the numbers: 2^64 numbers of 64 bits fit into it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sum(u128);

impl Sum {
    /// The sum, or 2^53-1 if that is less.
    pub fn get(self) -> u64 {
        let exact = u64::try_from(self.0).unwrap_or(MAX_EXACT);
        exact.min(MAX_EXACT)
    }

    /// Whether the sum is at most `most`.
    pub fn is_within(self, most: u64) -> bool {
        self.0 <= most.into()
    }

    /// How much may be added until the sum is `most`.
    pub fn room_to(self, most: u64) -> u64 {
        let room = u128::from(most).saturating_sub(self.0);
        u64::try_from(room).unwrap_or(u64::MAX)
    }
}

impl AddAssign<u64> for Sum {
    #[inline]
    fn add_assign(&mut self, n: u64) {
        self.0 = self.0.saturating_add(n.into());
    }
}

impl SubAssign<u64> for Sum {
    #[inline]
    fn sub_assign(&mut self, n: u64) {
        debug_assert!(
            self.0 >= n.into(),
            "what was never added is taken from a sum"
        );
        self.0 = self.0.saturating_sub(n.into());
    }
}

impl FromIterator<u64> for Sum {
    fn from_iter<I: IntoIterator<Item = u64>>(numbers: I) -> Sum {
        let mut sum = Sum::default();
        numbers.into_iter().for_each(|n| sum += n);
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_stops_at_what_a_snapshot_may_hold() {
        let mut count = Count::of(u64::MAX);
        assert_eq!(count.get(), MAX_EXACT);
        count += u64::MAX;
        assert_eq!(count.get(), MAX_EXACT);
        count = Count::default();
        count += 3;
        assert_eq!(count.get(), 3);
    }

    #[test]
    fn what_is_left_of_a_sum_is_exact_in_any_order() {
        let mut sum: Sum = [u64::MAX, 7, u64::MAX].into_iter().collect();
        assert_eq!((sum.get(), sum.room_to(u64::MAX)), (MAX_EXACT, 0));
        sum -= u64::MAX;
        sum -= u64::MAX;
        assert_eq!((sum.get(), sum.room_to(9)), (7, 2));
    }
}
