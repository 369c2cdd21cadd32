//! Counters of the module's own work.

use std::cell::RefCell;

use dq_queue::Millis;

/// Counters since the module was loaded.
#[derive(Debug, Default, Clone)]
pub struct Metrics {
    /// The number of slices: of the timer, of serving blocked clients, and of packing payloads.
    pub slices: u64,
    /// The duration of the longest slice, in microseconds.
    pub longest_slice_us: u64,
    /// The delay of the last slice of the timer, in ms.
    pub timer_lag: Millis,
    /// The largest delay of a slice of the timer, in ms.
    pub timer_lag_max: Millis,
}

thread_local! {
    static METRICS: RefCell<Metrics> = RefCell::default();
}

/// Runs `use_them` with the counters, to change or read them.
pub fn with<R>(use_them: impl FnOnce(&mut Metrics) -> R) -> R {
    METRICS.with_borrow_mut(use_them)
}

/// Counts a slice that took `took_us` microseconds.
pub fn count_slice(took_us: u64) {
    with(|metrics| {
        metrics.slices += 1;
        metrics.longest_slice_us = metrics.longest_slice_us.max(took_us);
    });
}

/// Counts that a slice of the timer began `lag` ms late.
pub fn count_lag(lag: Millis) {
    with(|metrics| {
        metrics.timer_lag = lag;
        metrics.timer_lag_max = metrics.timer_lag_max.max(lag);
    });
}
