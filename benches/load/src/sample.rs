//! Percentiles of measured durations.

use std::time::Duration;

/// Durations in microseconds, negative ones too.
#[derive(Default)]
pub struct Sample(Vec<i64>);

impl Sample {
    /// Adds one.
    pub fn push(&mut self, micros: i64) {
        self.0.push(micros);
    }

    /// Adds one.
    pub fn push_duration(&mut self, duration: Duration) {
        self.push(duration.as_micros().try_into().unwrap_or(i64::MAX));
    }

    /// Adds all of another.
    pub fn append(&mut self, mut other: Sample) {
        self.0.append(&mut other.0);
    }

    /// Writes what it holds as lines of `name=value`: `count`, `min_us`,
    /// `p50_us`, `p99_us`, `p999_us`, `max_us`; only `count` where it is empty.
    pub fn print(mut self) {
        self.0.sort_unstable();
        println!("count={}", self.0.len());
        let Some(last) = self.0.len().checked_sub(1) else {
            return;
        };
        let at = |per_mille: usize| self.0[last * per_mille / 1000];
        println!("min_us={}", self.0[0]);
        println!("p50_us={}", at(500));
        println!("p99_us={}", at(990));
        println!("p999_us={}", at(999));
        println!("max_us={}", self.0[last]);
    }
}
