//! Due events that a command processes before its own operation.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::server::wakeups;
use dq_queue::{Moment, Queue};

/// The maximum number of steps that a command spends on due events before its own operation. The
/// timer processes the rest.
const EVENTS_PER_COMMAND: u64 = 512;
/// The maximum number of steps for commands within [`BURST_US`] after a command that took more than
/// this. In a large burst, many commands one after the other must not block the server.
const EVENTS_PER_COMMAND_IN_BURST: u64 = 16;
/// How long after a large slice commands take only small ones, in microseconds.
const BURST_US: u64 = 1000;

/// Processes due events before a command, up to the limits above. Returns the number of steps it
/// took. It does nothing if the time of a schedule was missed: the timer handles that in a log
/// entry of its own.
#[inline]
pub fn process_due_events(queue: &mut Queue, moment: Moment) -> u64 {
    let now = queue.now(moment);
    if !queue.has_work(now) || queue.has_missed(wakeups::firing_since(queue, now)) {
        return 0;
    }
    static LAST_LARGE_US: AtomicU64 = AtomicU64::new(0);
    if moment.us < LAST_LARGE_US.load(Relaxed) + BURST_US {
        return queue.advance(now, EVENTS_PER_COMMAND_IN_BURST).steps;
    }
    let steps = queue.advance(now, EVENTS_PER_COMMAND).steps;
    if steps > EVENTS_PER_COMMAND_IN_BURST {
        LAST_LARGE_US.store(moment.us, Relaxed);
    }
    steps
}
