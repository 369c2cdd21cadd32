//! Times in which the server did nothing: it was stopped, a command took long, or its clock stepped
//! forward.
//!
//! Clients are not to blame for leases that ended meanwhile. So leases that have ended do not end
//! before the commands were read that had arrived, and for a schedule a long standstill counts as
//! if the server had been down.
//!
//! A standstill is a turn of the event loop that takes longer than [`LIMIT_US`], or a sleep that ends
//! so much later than it should. The server reads its sockets when it wakes, but a sleep that a
//! signal has ended brings nothing to read, so leases are spared for two turns.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::redis::clock;
use dq_queue::Millis;

/// A pause that is longer than this is a standstill, in microseconds.
const LIMIT_US: u64 = 20_000;
/// How long the server sleeps at most, in microseconds: its cron runs ten times per second. If it
/// runs less often, some sleeps count as standstills, which spares a few leases for some
/// milliseconds.
const LONGEST_SLEEP_US: u64 = 110_000;
/// The number of turns for which leases are spared after a standstill.
const SPARING_TURNS: u8 = 2;
/// A spared lease lasts longer by this, in ms.
pub const SPARE_MS: Millis = 20;
/// Leases are spared for at most this long while one standstill follows the other, in microseconds.
/// A server that is always busy must end leases, too.
const MOST_SPARING_US: u64 = 1_000_000;
/// The shortest standstill that counts for schedules, in microseconds. Shorter ones are jitter, even
/// for a schedule that fires in each millisecond.
const LEAST_MISSED_US: u64 = 1_000_000;

/// When the server woke, or last worked in the same turn, in microseconds.
static AT_WORK_US: AtomicU64 = AtomicU64::new(u64::MAX);

thread_local! {
    /// When the present sleep should end at the latest, in microseconds.
    static SLEEPS_UNTIL_US: Cell<u64> = const { Cell::new(u64::MAX) };
    /// Leases are spared for this many more turns.
    static SPARING: Cell<u8> = const { Cell::new(0) };
    /// When the first of the standstills that follow each other ended, in microseconds. 0: none.
    static SPARING_SINCE_US: Cell<u64> = const { Cell::new(0) };
    /// Begin and end of the last standstill that counts for schedules, in ms.
    static MISSED: Cell<(Millis, Millis)> = const { Cell::new((0, 0)) };
}

/// The server has woken.
#[inline]
pub fn woke() {
    let now = clock::recent_us();
    let until = SLEEPS_UNTIL_US.get();
    if now > until.saturating_add(LIMIT_US) {
        noticed(until, now);
    }
    AT_WORK_US.store(now, Relaxed);
}

/// The server is about to sleep, until `wake` (Unix ms) at the latest. Returns whether it should
/// begin another turn soon, because leases are spared.
#[inline]
pub fn before_sleep(wake: Millis) -> bool {
    let now = clock::recent_us();
    check(now);
    let wake = wake.saturating_mul(1000).max(now);
    SLEEPS_UNTIL_US.set(wake.min(now.saturating_add(LONGEST_SLEEP_US)));
    match SPARING.get() {
        0 => {
            SPARING_SINCE_US.set(0);
            false
        }
        turns => {
            SPARING.set(turns - 1);
            true
        }
    }
}

/// The clock was set back: a standstill of the old time has passed.
pub fn clock_was_set_back() {
    MISSED.set((0, 0));
    SPARING_SINCE_US.set(SPARING_SINCE_US.get().min(clock::recent_us()));
}

/// Notices a standstill that has just ended within this turn.
#[inline]
fn check(now_us: u64) {
    let at_work = AT_WORK_US.load(Relaxed);
    if now_us > at_work.saturating_add(LIMIT_US) {
        noticed(at_work, now_us);
        AT_WORK_US.store(now_us, Relaxed);
    }
}

#[cold]
fn noticed(begin_us: u64, end_us: u64) {
    SPARING.set(SPARING_TURNS);
    if SPARING_SINCE_US.get() == 0 {
        SPARING_SINCE_US.set(end_us);
    }
    if end_us - begin_us >= LEAST_MISSED_US {
        MISSED.set((begin_us / 1000, end_us / 1000));
    }
}

/// Whether leases that have ended are spared now: commands that arrived in time may not have been
/// read.
pub fn spares_leases() -> bool {
    let now = clock::recent_us();
    check(now);
    SPARING.get() > 0 && now < SPARING_SINCE_US.get().saturating_add(MOST_SPARING_US)
}

/// Begin and end of the last standstill that counts for schedules, in Unix ms.
pub fn missed() -> (Millis, Millis) {
    check(clock::recent_us());
    MISSED.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_are_spared_for_two_turns_and_not_for_ever() {
        noticed(1_000, 900_000);
        assert_eq!(MISSED.get(), (0, 0));
        assert!(before_sleep(0));
        assert!(before_sleep(0));
        assert!(!before_sleep(0));
        noticed(1_000, 3_000_000);
        assert_eq!(MISSED.get(), (1, 3_000));
        assert!(!spares_leases(), "long ago");
    }
}
