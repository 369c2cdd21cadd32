//! The only place that reads a clock.

use crate::runtime::queue_clock::QueueClock;
use std::cell::Cell;
use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

thread_local! {
    // Only the server's main thread decides by the time, so this is one
    // clock; others that ask get one of their own, without a lock.
    static CLOCK: Cell<QueueClock> = const { Cell::new(QueueClock::new()) };
}

/// The time of the queue clock, in microseconds since 1970. It never goes
/// back. About 30 ns.
#[inline]
pub fn now_us() -> u64 {
    CLOCK.with(|cell| {
        let mut clock = cell.get();
        let now = clock.read(wall_us(), monotonic_us);
        cell.set(clock);
        now
    })
}

/// How far another server's clock may be ahead and still be followed: beyond
/// it is no clock but a made-up value.
const BELIEVED_AHEAD_US: u64 = 24 * 3600 * 1_000_000;

/// Moves the queue clock to this time, in microseconds, if it is behind; not
/// if it is a day behind or more.
pub fn observe_us(us: u64) {
    if us > wall_us().saturating_add(BELIEVED_AHEAD_US) {
        return;
    }
    CLOCK.with(|cell| {
        let mut clock = cell.get();
        clock.observe(us, monotonic_us);
        cell.set(clock);
    });
}

/// The time of the queue clock, in milliseconds since 1970.
#[inline]
pub fn now_ms() -> u64 {
    now_us() / 1000
}

/// Microseconds of a clock that nobody sets: for measuring how long something
/// took.
#[inline]
pub fn monotonic_us() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    let start = START.get_or_init(Instant::now);
    start.elapsed().as_micros() as u64
}

/// The wall clock, in microseconds since 1970; 0 before that.
fn wall_us() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| {
            since.as_secs() * 1_000_000 + u64::from(since.subsec_micros())
        })
}
