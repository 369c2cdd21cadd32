//! Schedules the slices of queues, and sets the timer for the next one.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::redis::{clock, deadlines, event_loop, timer, Context, Value};
use dq_queue::{Millis, NEVER};

use super::address::QueueAddress;
use super::due_index::{Due, DueIndex};
use super::{config, standstill};

/// How long until the timer tries again during a CLIENT PAUSE or a failover, in ms.
pub const RETRY_MS: Millis = 20;

/// How long until a queue in a slot that this node does not serve is tried again, in ms.
pub const NOT_OWNED_RETRY_MS: Millis = 100;

/// The current term of this server, from 1 (see [`term`]).
static TERM: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static INDEX: RefCell<DueIndex> = RefCell::default();
    /// When the timer fires, in Unix milliseconds. `NEVER` if it is not set.
    static SET_FOR: Cell<Millis> = const { Cell::new(NEVER) };
    /// When the data of this server was loaded last, in Unix milliseconds.
    static GRACE_FROM: Cell<Millis> = const { Cell::new(0) };
    /// Since when this server has been able to fire schedules, in Unix milliseconds.
    static ACTING_SINCE: Cell<Millis> = const { Cell::new(0) };
}

/// Runs `use_it` with the index, to change or read it.
pub fn with_index<R>(use_it: impl FnOnce(&mut DueIndex) -> R) -> R {
    INDEX.with_borrow_mut(use_it)
}

/// Schedules the next slice of a queue, and ensures that the timer fires in time.
pub fn schedule(ctx: &Context, db: i32, key: &[u8], due: impl Into<Due>) {
    let due = due.into();
    with_index(|index| index.schedule(db, key, due));
    ensure(ctx, due.ms());
}

/// Ensures that the timer fires at `wake` at the latest, even if the server has already decided how
/// long it sleeps. Does nothing on a replica, which runs no slices.
pub fn ensure(ctx: &Context, wake: Millis) {
    if wake < SET_FOR.get() && ctx.is_primary() {
        set(ctx, wake);
    }
}

/// Ensures that the timer fires when the next blocked client times out. This also works on a
/// replica.
pub fn ensure_deadlines(ctx: &Context) {
    if let Some(delay) = deadlines::next_in_ms() {
        let wake = clock::now_ms().saturating_add(delay);
        if wake < SET_FOR.get() {
            set(ctx, wake);
        }
    }
}

/// Ends the waits whose timeout is over. Timeouts do not depend on the wall clock, but the timer
/// does: a step back freezes it. So the server's cron calls this too.
pub fn end_waits(ctx: &Context) {
    deadlines::end_overdue();
    ensure_deadlines(ctx);
}

fn set(ctx: &Context, wake: Millis) {
    let delay_us = wake.saturating_mul(1000).saturating_sub(clock::now_us());
    timer::arm(ctx, delay_us);
    SET_FOR.set(wake);
    event_loop::turn_again();
}

/// Sets the timer where that had to wait for the end of this turn of the event loop. Called before
/// the server sleeps.
pub fn end_turn(ctx: &Context) {
    if timer::end_turn(ctx) {
        event_loop::turn_again();
    }
}

/// Sets `count` timers that fire in the next turn of the event loop (see [`timer::burst`]). Each of
/// them sets the timer for the next slice.
pub fn burst(ctx: &Context, count: usize) {
    timer::burst(ctx, count);
    fired();
    ensure_deadlines(ctx);
    event_loop::turn_again();
}

/// Remembers that the timer has fired, so it is not set any more.
pub fn fired() {
    SET_FOR.set(NEVER);
}

/// Sets the timer for the next slice.
pub fn set_to_next(ctx: &Context) {
    ensure(ctx, with_index(|index| index.next_ms()));
}

/// The queue whose slice is next, and when it was due. `None` if none is due at `now`.
pub fn next_due(now: Millis) -> Option<(Due, QueueAddress)> {
    with_index(|index| index.next_turn(now))
}

/// Whether any queue has arrived whose slice has not run yet.
pub fn has_arrivals() -> bool {
    with_index(|index| index.has_arrivals())
}

/// Whether the slice of any queue is due at `now`.
pub fn is_due(now: Millis) -> bool {
    with_index(|index| index.next_ms()) <= now
}

/// Sets the timer to fire now if a slice is overdue: the server's timers can be late by any time
/// after the wall clock was set back.
pub fn run_overdue(ctx: &Context) {
    let set_for = SET_FOR.get();
    let next = with_index(|index| index.next_ms());
    let overdue = set_for.min(next) < clock::now_ms().saturating_sub(1);
    if (overdue || !timer::is_armed() && next != NEVER) && ctx.is_primary() {
        SET_FOR.set(NEVER);
        ensure(ctx, next.min(set_for));
    }
}

/// Begins a new term: this server can fire schedules from now on. Earlier fire times that it has
/// not handled count as missed. Each queue gets a slice, since the time of its next one was that of
/// another server.
pub fn start_acting() {
    let now = clock::now_ms();
    ACTING_SINCE.set(now);
    with_index(|index| index.schedule_all(now));
    TERM.fetch_add(1, Relaxed);
}

/// The number of times that this server has begun to act on its own: when it was started, when it
/// had loaded its data, when it became a primary. Other servers may have changed the queues before
/// that.
#[inline]
pub fn term() -> u64 {
    TERM.load(Relaxed)
}

/// The clock of this server was set back. Each queue gets a slice, which brings its clock into line
/// and schedules the next one. Times that were noted by the old clock are in the past, and will not
/// come again.
pub fn clock_was_set_back(ctx: &Context) {
    let now = clock::now_ms();
    let acting_since = ACTING_SINCE.get().min(now);
    if GRACE_FROM.get() == ACTING_SINCE.get() {
        GRACE_FROM.set(acting_since);
    }
    ACTING_SINCE.set(acting_since);
    with_index(|index| index.schedule_all(now));
    SET_FOR.set(NEVER);
    ensure(ctx, now);
}

/// Begins a new term because the data of this server was loaded. Running leases get the grace.
pub fn start_after_load() {
    start_acting();
    GRACE_FROM.set(ACTING_SINCE.get());
}

/// How long (ms) running leases last at least at `now` (Unix ms), because the server was started.
pub fn grace_left(now: Millis) -> Millis {
    let since = GRACE_FROM.get();
    match since == ACTING_SINCE.get() {
        true => since
            .saturating_add(config::START_GRACE.unsigned())
            .saturating_sub(now),
        false => 0,
    }
}

/// When the timer fires, in Unix milliseconds. [`NEVER`] if it is not set.
#[inline]
pub fn set_for() -> Millis {
    SET_FOR.get()
}

/// Before which time (Unix ms) fire times of the queue's next schedule count as missed, if its next
/// one does: the server was down or stood still.
pub fn missed_before(queue: &Value, now: Millis) -> Option<Millis> {
    let since = firing_since(queue, now);
    if queue.has_missed(since) {
        return Some(since);
    }
    if queue.schedules().len() == 0 {
        return None;
    }
    let (begin, end) = standstill::missed();
    queue.has_missed_in(begin, end).then_some(end)
}

/// Since when the schedules of a queue have been able to fire, in Unix milliseconds. It is `now` if
/// no slice of the queue has run yet.
fn firing_since(queue: &Value, now: Millis) -> Millis {
    match queue.notes.wake {
        Some(_) => ACTING_SINCE.get().max(queue.notes.arrival),
        None => now,
    }
}
