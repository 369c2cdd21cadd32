//! Faults that should never be: log entries that cannot be applied, and internal errors. Each is
//! counted for INFO, and told in the log of the server, with a bounded number of lines.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::clock;
use super::log::warn;
use dq_queue::quote::quote;

/// The most lines of one kind in [`SPAN_MS`].
const MOST_LINES: u32 = 10;

/// The span in which lines are counted, in ms.
const SPAN_MS: u64 = 60_000;

/// One kind of faults. A panic may come from the threads that free values, too.
struct Faults {
    count: AtomicU64,
    lines: Mutex<Lines>,
}

/// The lines of one kind.
#[derive(Default)]
struct Lines {
    /// When the span began, in ms of the monotonic clock.
    began: u64,
    /// The lines that were written in it.
    written: u32,
    /// The lines that were left out since the last one.
    left_out: u64,
}

static UNAPPLIED: Faults = Faults::new();
static INTERNAL: Faults = Faults::new();

/// The number of log entries that could not be applied since the module was loaded.
pub fn unapplied_entries() -> u64 {
    UNAPPLIED.count.load(Ordering::Relaxed)
}

/// The number of internal errors since the module was loaded.
pub fn internal_errors() -> u64 {
    INTERNAL.count.load(Ordering::Relaxed)
}

/// A log entry of the queue in `key`, or a command that was replicated verbatim, could not be
/// applied. So the queue differs from that of the primary, or from what it was before a restart.
#[cold]
pub fn entry_unapplied(key: &[u8], verb: &str, why: &str) {
    let key = quote(key);
    UNAPPLIED.note(|| format!("a log entry could not be applied: {verb} {key}: {why}"));
}

/// Something has happened that only a bug of the module can cause, and the server goes on. `what`
/// says what it was, in a sentence without any part of a payload.
#[cold]
pub fn internal_error(what: &str) {
    INTERNAL.note(|| format!("internal error: {what}"));
}

impl Faults {
    const fn new() -> Faults {
        Faults {
            count: AtomicU64::new(0),
            lines: Mutex::new(Lines {
                began: 0,
                written: 0,
                left_out: 0,
            }),
        }
    }

    fn note(&self, line: impl FnOnce() -> String) {
        self.count.fetch_add(1, Ordering::Relaxed);
        let now = clock::monotonic_us() / 1000;
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        match lines.next(now) {
            Some(0) => warn(&line()),
            Some(left_out) => warn(&format!("{} ({left_out} before it are not shown)", line())),
            None => {}
        }
    }
}

impl Lines {
    /// Whether a line may be written at `now`, and then how many were left out before it.
    fn next(&mut self, now: u64) -> Option<u64> {
        if now >= self.began + SPAN_MS {
            (self.began, self.written) = (now, 0);
        }
        if self.written == MOST_LINES {
            self.left_out += 1;
            return None;
        }
        self.written += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_has_ten_lines_and_the_next_one_tells_of_those_left_out() {
        let mut lines = Lines::default();
        let start = SPAN_MS * 7;
        let shown = (0..1000).filter(|n| lines.next(start + n) == Some(0));
        assert_eq!(shown.count(), 10);
        assert_eq!(lines.next(start + SPAN_MS - 1), None);
        assert_eq!(lines.next(start + SPAN_MS), Some(991));
        assert_eq!(lines.next(start + SPAN_MS), Some(0));
    }
}
