//! What every change of a queue begins with: its clock, and due events.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::server::wakeups;
use dq_queue::op::Before;
use dq_queue::queue::lead::MAX_LEAD;
use dq_queue::{Moment, Queue};

/// The maximum number of steps that a command spends on due events before its own operation. The
/// timer processes the rest.
const EVENTS_PER_COMMAND: u64 = 512;
/// The maximum number of steps for commands within [`BURST_US`] after a command that took more than
/// this. In a large burst, many commands one after the other must not block the server.
const EVENTS_PER_COMMAND_IN_BURST: u64 = 16;
/// How long after a large slice commands take only small ones, in microseconds.
const BURST_US: u64 = 1000;

/// The beginning of a change.
#[derive(Debug, Clone, Copy)]
pub struct Begun {
    /// The moment of the change, by the clock of the queue.
    pub moment: Moment,
    /// What was done before, which must be replicated with the change.
    pub before: Before,
}

/// Begins a change by a command at a moment of the server: brings the clock of the queue into line
/// with the server's, and processes due events up to the limits above. It processes none if the
/// time of a schedule was missed: the timer handles that in a log entry of its own.
#[inline]
pub fn begin(queue: &mut Queue, server: Moment) -> Begun {
    let mut begun = begin_without_events(queue, server);
    let now = queue.now(begun.moment);
    if !queue.has_work(now) || queue.has_missed(wakeups::firing_since(queue, now)) {
        return begun;
    }
    static LAST_LARGE_US: AtomicU64 = AtomicU64::new(0);
    let us = begun.moment.us;
    if us < LAST_LARGE_US.load(Relaxed) + BURST_US {
        begun.before.steps = queue.advance(now, EVENTS_PER_COMMAND_IN_BURST).steps;
        return begun;
    }
    let steps = queue.advance(now, EVENTS_PER_COMMAND).steps;
    if steps > EVENTS_PER_COMMAND_IN_BURST {
        LAST_LARGE_US.store(us, Relaxed);
    }
    begun.before.steps = steps;
    begun
}

/// Begins a change at a moment of the server, but processes no due events.
#[inline]
pub fn begin_without_events(queue: &mut Queue, server: Moment) -> Begun {
    let moment = queue.follow(server);
    match moment == server {
        true => Begun {
            moment,
            before: Before::default(),
        },
        false => begin_ahead(queue, moment, server),
    }
}

/// Begins a change of a queue whose clock is ahead. A large lead is cut.
#[cold]
fn begin_ahead(queue: &mut Queue, ahead: Moment, server: Moment) -> Begun {
    let lead = ahead.ms().saturating_sub(server.ms());
    if lead <= MAX_LEAD {
        return Begun {
            moment: ahead,
            before: Before::default(),
        };
    }
    let before = Before {
        cut: lead,
        ..Before::default()
    };
    queue.prepare(&before, server);
    Begun {
        moment: server,
        before,
    }
}

/// Whether a change of the queue can begin without doing anything but to process due events.
pub fn can_begin(queue: &Queue, server: Moment) -> bool {
    queue.lead(server) <= MAX_LEAD
}
