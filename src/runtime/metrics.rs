//! What the module counts of its own work.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::command::table::COMMANDS;
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

static CALLS: [AtomicU64; COMMANDS.len()] = [const { AtomicU64::new(0) }; COMMANDS.len()];

/// Counts a call of the command in this row of the table.
pub fn count_call(row: usize) {
    if let Some(calls) = CALLS.get(row) {
        // Only the main thread counts, so that this need not be one step, which
        // would cost as much as some allocations.
        calls.store(calls.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

/// How often each command was called.
pub fn calls() -> impl Iterator<Item = (&'static str, u64)> {
    let names = COMMANDS.iter().map(|command| command.name);
    names.zip(CALLS.iter().map(|calls| calls.load(Ordering::Relaxed)))
}
