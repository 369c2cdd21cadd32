//! The only place that reads a clock.

use super::queue_clock::QueueClock;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

thread_local! {
    // Only the server's main thread decides by the time, so this is one clock.
    static CLOCK: Cell<QueueClock> = const { Cell::new(QueueClock::new()) };
}

/// What the queue clock showed last, and the processor's counter then. Only the main
/// thread uses them; an atomic costs less to reach than a thread's own.
static LAST_US: AtomicU64 = AtomicU64::new(0);
static LAST_TICKS: AtomicU64 = AtomicU64::new(LONG_AGO);
/// No counter has shown this yet, so that what it says is not recent.
const LONG_AGO: u64 = u64::MAX;

/// A reading is recent for so many ticks: 32 us at 1 GHz, 8 at 4. A command takes as
/// long from its client to here.
const RECENT_TICKS: u64 = 1 << 15;

/// The time of the queue clock, in microseconds since 1970. It never goes
/// back. About 30 ns.
#[inline]
pub fn now_us() -> u64 {
    read(ticks())
}

/// The time of the queue clock, or what it showed last if that was a few microseconds
/// ago: 8 to 32, as fast as the processor counts. Never ahead of the clock, nor before
/// a time that it has shown. About 10 ns.
#[inline]
pub fn recent_us() -> u64 {
    let ticks = ticks();
    let is_recent = |now: u64| now.wrapping_sub(LAST_TICKS.load(Relaxed)) < RECENT_TICKS;
    match ticks.is_some_and(is_recent) {
        true => LAST_US.load(Relaxed),
        false => read(ticks),
    }
}

fn read(ticks: Option<u64>) -> u64 {
    let mut clock = CLOCK.get();
    let us = clock.read(wall_us(), monotonic_us);
    CLOCK.set(clock);
    LAST_US.store(us, Relaxed);
    LAST_TICKS.store(ticks.unwrap_or(LONG_AGO), Relaxed);
    us
}

/// The counter of the processor, which costs less than half of a clock. Where it
/// differs between cores, or jumps as the machine is moved, an older reading may pass
/// for recent, but no longer than a recent one does.
#[inline]
fn ticks() -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: all processors of this kind have it, and the kernel's own clocks of user
    // programs read it, too.
    return Some(unsafe { std::arch::x86_64::_rdtsc() });
    #[cfg(not(target_arch = "x86_64"))]
    None
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
    let mut clock = CLOCK.get();
    clock.observe(us, monotonic_us);
    CLOCK.set(clock);
    LAST_TICKS.store(LONG_AGO, Relaxed);
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

#[cfg(test)]
mod tests {
    use super::*;

    // One test, for there is one last reading.
    #[test]
    fn a_recent_time_was_shown_a_moment_ago() {
        let mut last = 0;
        for _ in 0..100_000 {
            let before = now_us();
            let recent = recent_us();
            assert!(before.max(last) <= recent);
            last = recent;
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert!(recent_us() >= last + 2000);
        // Nor is it before one of another server.
        let ahead = recent_us() + 3_000_000;
        observe_us(ahead);
        assert!(recent_us() >= ahead);
    }
}
