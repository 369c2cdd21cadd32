//! Counters and the distribution of lateness since a queue was created.

use std::collections::BTreeMap;

use crate::sums::Count;
use crate::{Millis, MAX_EXACT};

/// Totals since the queue was created.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Messages sent, including those that replaced one and those from schedules.
    pub sent: Count,
    /// Messages not sent because their id was taken.
    pub duplicates: Count,
    /// Deliveries.
    pub delivered: Count,
    /// Deliveries with an attempt above 1.
    pub redelivered: Count,
    /// Messages acked.
    pub acked: Count,
    /// Messages nacked, whether or not the nack counted as a failure.
    pub nacked: Count,
    /// Leases that ran out.
    pub timeouts: Count,
    /// Messages that died.
    pub deaths: Count,
    /// Messages that died because their TTL had passed.
    pub expired: Count,
    /// Messages cancelled.
    pub cancellations: Count,
    /// Dead messages that a redrive made pending again.
    pub redriven: Count,
    /// Schedules that fired but were skipped because the queue was full.
    pub skipped_fires: Count,
}

/// Maximum number of distinct values; with more, the largest are merged.
const MOST_VALUES: usize = 16_384;

/// The lateness of deliveries: ms between the time when a message was ready and its
/// delivery.
///
/// Counts are exact to the millisecond up to 16,384 distinct values. With more,
/// neighbouring large values are merged upwards, to within 1/256 of their size.
#[derive(Debug, Clone, Default)]
pub struct Lateness {
    counts: BTreeMap<Millis, u64>,
    /// A key of `counts`, and how often it was seen beyond the count stored there.
    /// Many messages that fall due together are equally late, and need no search
    /// this way.
    run: Option<(Millis, u64)>,
    total: u64,
    max: Millis,
}

impl Lateness {
    /// Restores the distribution from a snapshot: values in ascending order with
    /// their counts, and the largest value ever counted. `None` if the input is
    /// invalid: not in order, a count of 0, too many values or too large a total.
    pub fn from_counts(
        counts: impl IntoIterator<Item = (Millis, u64)>,
        max: Millis,
    ) -> Option<Lateness> {
        let mut lateness = Lateness {
            max,
            ..Lateness::default()
        };
        for (late, n) in counts {
            let last = lateness.counts.last_key_value();
            let in_order = last.is_none_or(|(before, _)| *before < late);
            if !in_order || n == 0 || lateness.counts.len() == MOST_VALUES {
                return None;
            }
            lateness.total = lateness.total.checked_add(n).filter(|n| *n <= MAX_EXACT)?;
            lateness.counts.insert(late, n);
        }
        Some(lateness)
    }

    /// Counts one delivery that was `late` ms late.
    pub fn count(&mut self, late: Millis) {
        self.add(late, 1);
    }

    /// Counts `n` deliveries that were `late` ms late.
    pub fn add(&mut self, late: Millis, n: u64) {
        // The distribution can hold as many as a snapshot may say. Deliveries beyond are not in it.
        let n = n.min(MAX_EXACT.saturating_sub(self.total));
        if n == 0 {
            return;
        }
        self.total += n;
        match &mut self.run {
            Some((of, more)) if *of == late => *more += n,
            _ => self.begin_run(late, n),
        }
    }

    /// Adds the deliveries of another distribution. O(values).
    pub fn add_all(&mut self, other: &Lateness) {
        for (late, n) in other.counts() {
            self.add(late, n);
        }
        self.max = self.max.max(other.max);
    }

    fn begin_run(&mut self, late: Millis, n: u64) {
        if let Some((of, more @ 1..)) = self.run.replace((late, 0)) {
            *self.counts.entry(of).or_insert(0) += more;
        }
        self.max = self.max.max(late);
        *self.counts.entry(late).or_insert(0) += n;
        if self.counts.len() > MOST_VALUES {
            self.run = None;
            let merged = std::mem::take(&mut self.counts);
            for (late, n) in merged {
                let step = (late / 256).next_power_of_two().max(1);
                let upper = late.div_ceil(step).saturating_mul(step);
                *self.counts.entry(upper).or_insert(0) += n;
            }
        }
    }

    /// The smallest value in ms that at least `percent` (0 to 100) of the
    /// deliveries do not exceed (nearest rank). `None` if there are no deliveries.
    pub fn percentile(&self, percent: u64) -> Option<Millis> {
        if self.total == 0 {
            return None;
        }
        let rank = (u128::from(self.total) * u128::from(percent)).div_ceil(100);
        let mut seen = 0u128;
        for (late, n) in self.counts() {
            seen += u128::from(n);
            if seen >= rank {
                return Some(late.min(self.max));
            }
        }
        Some(self.max)
    }

    /// The largest value in ms. `None` if there are no deliveries.
    pub fn max(&self) -> Option<Millis> {
        (self.total > 0).then_some(self.max)
    }

    /// The values in ms and how often each was seen, smallest value first.
    pub fn counts(&self) -> impl ExactSizeIterator<Item = (Millis, u64)> + '_ {
        let (of, more) = self.run.unwrap_or_default();
        self.counts.iter().map(move |(late, n)| match *late == of {
            true => (of, *n + more),
            false => (*late, *n),
        })
    }

    /// Bytes allocated, an estimate. O(1).
    pub fn memory_bytes(&self) -> usize {
        self.counts.len() * 24
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_exact() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.percentile(50), None);
        for late in 1..=100 {
            lateness.count(late);
        }
        assert_eq!(lateness.percentile(50), Some(50));
        assert_eq!(lateness.percentile(99), Some(99));
        assert_eq!(lateness.max(), Some(100));
        lateness.add(0, 900);
        assert_eq!(lateness.percentile(50), Some(0));
        assert_eq!(lateness.percentile(99), Some(90));
    }

    #[test]
    fn with_very_many_values_memory_is_bounded_and_percentiles_stay_close() {
        let mut lateness = Lateness::default();
        for late in 0..200_000u64 {
            lateness.count(late * 7);
        }
        assert!(lateness.counts.len() <= MOST_VALUES);
        let p50 = lateness.percentile(50).unwrap() as f64;
        assert!((p50 / 700_000.0 - 1.0).abs() < 0.01, "{p50}");
        assert_eq!(lateness.max(), Some(199_999 * 7));
    }

    #[test]
    fn equal_values_in_a_row_are_counted_like_any_others() {
        let values = [5, 5, 5, 0, 0, 7, 5, 5, 7, 7, 7];
        let mut lateness = Lateness::default();
        for (seen, late) in values.iter().enumerate() {
            lateness.count(*late);
            let mut expected = BTreeMap::new();
            for late in values.iter().take(seen + 1) {
                *expected.entry(*late).or_insert(0) += 1;
            }
            assert!(lateness.counts().eq(expected));
        }
        assert_eq!(lateness.percentile(50), Some(5));
    }

    #[test]
    fn a_restored_distribution_merges_values_when_the_original_does() {
        let mut lateness = Lateness::default();
        for late in 0..MOST_VALUES as u64 {
            lateness.count(late * 900);
            lateness.count(late * 900);
        }
        let counts = lateness.counts();
        let mut loaded = Lateness::from_counts(counts, lateness.max).unwrap();
        for late in [MOST_VALUES as u64 * 900, 7, 7, 8, 8, 7] {
            lateness.count(late);
            loaded.count(late);
            assert!(lateness.counts().eq(loaded.counts()), "after {late}");
        }
    }
}
