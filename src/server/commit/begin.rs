//! The beginning of every change of a queue: its clock, leases that are spared, and due events.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::redis::{memory, Value};
use crate::server::{standstill, wakeups};
use dq_queue::op::Before;
use dq_queue::queue::Progress;
use dq_queue::queue::MAX_LEAD;
use dq_queue::settings::Clock;
use dq_queue::{Millis, Moment, Queue, NEVER};

/// The maximum number of steps that a command spends on due events before its own operation. The
/// timer processes the rest.
const EVENTS_PER_COMMAND: u64 = 512;
/// The maximum number of steps for commands within [`BURST_US`] after a command that took more than
/// this. In a large burst, many commands one after the other must not block the server.
const EVENTS_PER_COMMAND_IN_BURST: u64 = 16;
/// Commands run only small slices for this long after a large one, in microseconds.
const BURST_US: u64 = 1000;

/// The beginning of a change.
#[derive(Debug, Clone, Copy)]
pub struct Begun {
    /// The moment of the change, by the clock of the queue.
    pub moment: Moment,
    /// The changes before the operation, which must be replicated with it.
    pub before: Before,
}

/// Begins a change by a command at a moment of the server: sets the clock of the queue by the
/// server's, spares leases, and processes due events up to the limits above. No schedule fires in
/// that whose time was missed: the timer handles it in a log entry of its own. `spent` is the number
/// of steps that the command has spent on due events before. The queue may owe something to other
/// keys then, and no operation may be applied before that is settled.
#[inline(always)]
pub fn begin(queue: &mut Value, server: Moment, spent: u64) -> Begun {
    let is_known = queue.notes.changed_term == wakeups::term();
    match is_known && !queue.may_be_ahead(server) && !queue.has_work(queue.now(server)) {
        true => Begun::at(server),
        false => begin_with_work(queue, server, spent),
    }
}

/// Begins a change of a queue for which there may be something to do before it.
fn begin_with_work(queue: &mut Value, server: Moment, spent: u64) -> Begun {
    let mut begun = begin_without_events(queue, server);
    let now = queue.now(begun.moment);
    if !queue.has_work(now) {
        return begun;
    }
    static LAST_LARGE_US: AtomicU64 = AtomicU64::new(0);
    let us = begun.moment.us;
    // The clocks of two queues may differ, so the last one may be in the future of this one.
    let is_in_burst = us.wrapping_sub(LAST_LARGE_US.load(Relaxed)) < BURST_US;
    let most = match is_in_burst {
        true => EVENTS_PER_COMMAND_IN_BURST,
        false => EVENTS_PER_COMMAND,
    };
    let waits = has_fire_without_memory(queue, now) || wakeups::missed_before(queue, now).is_some();
    begun.advance(queue, most.saturating_sub(spent), waits);
    if !is_in_burst && spent + begun.before.steps > EVENTS_PER_COMMAND_IN_BURST {
        LAST_LARGE_US.store(us, Relaxed);
    }
    begun
}

/// Whether a schedule is due to fire by `now` for whose message the server has no memory. The timer
/// passes over such fire times in a log entry of its own.
#[inline]
pub fn has_fire_without_memory(queue: &Queue, now: Millis) -> bool {
    queue.has_fire(now) && memory::is_full()
}

/// Begins a change at a moment of the server, but processes no due events.
#[inline]
pub fn begin_without_events(queue: &mut Value, server: Moment) -> Begun {
    let is_new = queue.notes.changed_term != wakeups::term();
    if is_new {
        queue.forget_lead();
    }
    let moment = queue.follow(server);
    if moment != server || is_new {
        return begin_apart(queue, moment, server);
    }
    let mut begun = Begun::at(moment);
    if queue.has_work(queue.now(moment)) {
        begun.spare_ended(queue);
    }
    begun
}

/// Begins the first change of a queue in this term of the server, or one of a queue whose clock is
/// ahead. A large lead is cut. After a start, leases get the grace.
#[cold]
fn begin_apart(queue: &mut Value, ahead: Moment, server: Moment) -> Begun {
    let lead = ahead.ms().saturating_sub(server.ms());
    let mut begun = Begun::at(ahead);
    if lead > MAX_LEAD {
        begun.moment = server;
        begun.before.cut = lead;
        queue.prepare(&begun.before, server);
        queue.notes.clock_was_cut(server.ms());
    }
    if std::mem::replace(&mut queue.notes.changed_term, wakeups::term()) != wakeups::term() {
        let left = wakeups::grace_left(server.ms());
        if left > 0 {
            let now = queue.now(begun.moment);
            begun.spare(queue, now.saturating_add(left));
        }
    }
    begun.spare_ended(queue);
    begun
}

/// Whether a change of the queue can begin without doing anything but to process due events.
pub fn can_begin(queue: &Value, server: Moment) -> bool {
    let is_known = queue.notes.changed_term == wakeups::term() || !queue.has_lease_before(NEVER);
    let now = queue.time(server);
    let may_spare = || queue.has_work(now) && queue.has_lease_before(now + 1);
    is_known && has_small_lead(queue, server) && !(may_spare() && standstill::spares_leases())
}

/// Whether the clock of the queue need not be set back.
pub fn has_small_lead(queue: &Queue, server: Moment) -> bool {
    queue.lead(server) <= MAX_LEAD
}

impl Begun {
    /// A change without any work before it.
    pub fn at(moment: Moment) -> Begun {
        Begun {
            moment,
            before: Before::default(),
        }
    }

    /// Processes due events, at most `most` of them. Without those that fire schedules where fires
    /// wait: a fire time was missed, or the server has no memory for a message.
    pub fn advance(&mut self, queue: &mut Queue, most: u64, fires_wait: bool) -> Progress {
        let now = queue.now(self.moment);
        let progress = match fires_wait {
            true => queue.advance_without_fires(now, most),
            false => queue.advance(now, most),
        };
        self.before.steps += progress.steps;
        self.before.without_fires = fires_wait && self.before.steps > 0;
        progress
    }

    /// Spares the leases that have ended while the server stood still.
    fn spare_ended(&mut self, queue: &mut Queue) {
        let now = queue.now(self.moment);
        if queue.has_lease_before(now + 1) && standstill::spares_leases() {
            self.spare(queue, now + standstill::SPARE_MS);
        }
    }

    /// Lets no lease end before `to`, by the clock of the queue.
    fn spare(&mut self, queue: &mut Queue, to: Millis) {
        if queue.clock() == Clock::Server && queue.has_lease_before(to) {
            queue.spare_leases(to);
            self.before.spare = self.before.spare.max(to);
        }
    }
}
