//! What the module counts of its own work.

use std::cell::RefCell;

use dq_queue::Millis;

/// Counts since the module was loaded.
#[derive(Debug, Default, Clone)]
pub struct Metrics {
    /// Slices of the work of the timer, and of serving those who wait.
    pub slices: u64,
    /// The longest of them, in microseconds.
    pub longest_slice_us: u64,
    /// How late the timer was the last time, in ms.
    pub timer_lag: Millis,
    /// How late it was at most, in ms.
    pub timer_lag_max: Millis,
}

thread_local! {
    static METRICS: RefCell<Metrics> = RefCell::default();
}

/// Changes or reads them.
pub fn with<R>(use_them: impl FnOnce(&mut Metrics) -> R) -> R {
    METRICS.with_borrow_mut(use_them)
}

/// Counts a slice of what is done without a command, which took so many
/// microseconds.
pub fn count_slice(took_us: u64) {
    with(|metrics| {
        metrics.slices += 1;
        metrics.longest_slice_us = metrics.longest_slice_us.max(took_us);
    });
}

/// Counts by how many ms the timer was late.
pub fn count_lag(lag: Millis) {
    with(|metrics| {
        metrics.timer_lag = lag;
        metrics.timer_lag_max = metrics.timer_lag_max.max(lag);
    });
}
