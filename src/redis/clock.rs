//! The clocks. No other file of the module reads one.

use super::queue_clock::QueueClock;
use lazy_static::lazy_static;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

thread_local! {
    // Only the server's main thread uses it, so there is only one clock.
    static CLOCK: RefCell<QueueClock> = const { RefCell::new(QueueClock::new()) };
}

/// The last reading of the queue clock, and the processor's time-stamp counter at that time. Only
/// the main thread uses them; an atomic is cheaper to access than a thread-local.
static LAST_US: AtomicU64 = AtomicU64::new(0);
static LAST_TICKS: AtomicU64 = AtomicU64::new(NO_TICKS);
/// Marks that the last reading must not be used as a recent one. No counter reaches this value.
const NO_TICKS: u64 = u64::MAX;

/// A reading counts as recent for this many ticks: 32 us at 1 GHz, 8 us at 4 GHz. A command
/// takes about as long from its client to the module.
const RECENT_TICKS: u64 = 1 << 15;

/// The time of the queue clock, in microseconds since 1970. It goes back only if the system clock was
/// set back by more than 100 ms (see [`take_set_back`]). Costs about 30 ns.
#[inline]
pub fn now_us() -> u64 {
    read(ticks())
}

/// The time of the queue clock in microseconds since 1970, up to 32 microseconds old (see
/// [`RECENT_TICKS`]). It is never ahead of the clock, and never before a time that the clock has
/// shown, unless the clock was set back. Costs about 10 ns.
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
    let us = CLOCK.with_borrow_mut(|clock| clock.read(wall_us(), monotonic_us));
    LAST_US.store(us, Relaxed);
    LAST_TICKS.store(ticks.unwrap_or(NO_TICKS), Relaxed);
    us
}

/// Whether the clock was set back since the last call, as far as it was read.
#[inline]
pub fn take_set_back() -> bool {
    CLOCK.with_borrow_mut(QueueClock::take_set_back)
}

/// The time-stamp counter of the processor, or `None` if it has none. Reading it costs less than
/// half of reading a clock. If the counter differs between cores, or jumps when a virtual
/// machine migrates, an older reading may count as recent, for at most [`RECENT_TICKS`] more.
#[inline]
fn ticks() -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: all x86-64 processors have it, and programs may read it: the kernel's own clocks for
    // user programs do.
    return Some(unsafe { std::arch::x86_64::_rdtsc() });
    #[cfg(not(target_arch = "x86_64"))]
    None
}

/// The time of the queue clock, in milliseconds since 1970.
#[inline]
pub fn now_ms() -> u64 {
    now_us() / 1000
}

/// The monotonic clock, in microseconds since its first use: for measuring how long something took.
#[inline]
pub fn monotonic_us() -> u64 {
    lazy_static! {
        static ref START: Instant = Instant::now();
    }
    START.elapsed().as_micros() as u64
}

/// The wall clock, in microseconds since 1970. 0 if it shows a time before that.
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

    // This is one test, because separate tests would share the last reading.
    #[test]
    fn a_recent_time_is_never_before_a_time_that_was_shown() {
        let mut last = 0;
        for _ in 0..100_000 {
            let before = now_us();
            let recent = recent_us();
            assert!(before.max(last) <= recent);
            last = recent;
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert!(recent_us() >= last + 2000);
    }
}
