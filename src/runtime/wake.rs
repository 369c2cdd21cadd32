//! When to look at which queue, and the timer that does it.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::ffi::{clock, deadlines, event_loop, timer, Context};
use dq_queue::{Millis, Queue, NEVER};

use super::index::{self, Index, Place};

/// While a pause or failover is on, the timer asks again after so long.
pub const ASK_AGAIN_MS: Millis = 20;

/// The term of this server, from 1.
static TERM: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static INDEX: RefCell<Index> = RefCell::default();
    /// When the timer is to fire, NEVER if it is not set.
    static SET_FOR: Cell<Millis> = const { Cell::new(NEVER) };
    /// Since when this server has been able to fire schedules.
    static ACTING_SINCE: Cell<Millis> = const { Cell::new(0) };
}

/// Changes or reads the index.
pub fn with_index<R>(use_it: impl FnOnce(&mut Index) -> R) -> R {
    INDEX.with_borrow_mut(use_it)
}

/// Notes when a queue is to be looked at and sees to it that the timer fires
/// in time.
pub fn note(ctx: &Context, db: i32, key: &[u8], wake: Millis) {
    with_index(|index| index.note(db, key, wake));
    ensure(ctx, wake);
}

/// Sees to it that the timer fires at `wake` at the latest, also where the
/// server has reckoned already how long it sleeps. On a replica there is nothing
/// to fire for.
pub fn ensure(ctx: &Context, wake: Millis) {
    if wake < SET_FOR.get() && ctx.is_primary() {
        set(ctx, wake);
    }
}

/// Sees to it that the timer fires, on a replica too, when the first of those
/// clients has waited long enough that wait for a limited time.
pub fn ensure_deadlines(ctx: &Context) {
    if let Some(delay) = deadlines::next_in_ms() {
        let wake = clock::now_ms().saturating_add(delay);
        if wake < SET_FOR.get() {
            set(ctx, wake);
        }
    }
}

/// Ends the waits of those who have waited long enough. Steps of the wall clock
/// do not matter, but that a step back freezes the timer, so that the cron has to
/// see to them.
pub fn end_waits(ctx: &Context) {
    deadlines::end_overdue();
    ensure_deadlines(ctx);
}

fn set(ctx: &Context, wake: Millis) {
    timer::arm(ctx, index::delay(wake, clock::now_us()));
    SET_FOR.set(wake);
    event_loop::turn_again();
}

/// The timer has fired.
pub fn fired() {
    SET_FOR.set(NEVER);
}

/// Sets the timer to what comes next.
pub fn set_to_next(ctx: &Context) {
    if let Some((wake, _)) = with_index(|index| index.next()) {
        ensure(ctx, wake);
    }
}

/// What the index says is due.
pub fn next_due(now: Millis) -> Option<(Millis, Place)> {
    with_index(|index| index.next()).filter(|(wake, _)| *wake <= now)
}

/// The server's timers can be late by any time, because the wall clock was set
/// back: what is overdue is looked at now.
pub fn watch_over(ctx: &Context) {
    let set_for = SET_FOR.get();
    let next = with_index(|index| index.next()).map_or(NEVER, |(wake, _)| wake);
    let overdue = set_for.min(next) < clock::now_ms().saturating_sub(1);
    if (overdue || !timer::is_armed() && next != NEVER) && ctx.is_primary() {
        SET_FOR.set(NEVER);
        ensure(ctx, next.min(set_for));
    }
}

/// This server can fire schedules from now on: what should have fired before
/// was missed. A new term begins.
pub fn start_acting() {
    ACTING_SINCE.set(clock::now_ms());
    TERM.fetch_add(1, Relaxed);
}

/// How many times this server has begun to act: when it was started, when it had
/// loaded its data, when it became a primary. Others may have acted on the same
/// queues before that.
#[inline]
pub fn term() -> u64 {
    TERM.load(Relaxed)
}

/// Since when the schedules of a queue can fire: those of one that has not been
/// looked at yet, from now on.
pub fn firing_since(queue: &Queue, now: Millis) -> Millis {
    match queue.noted_wake {
        Some(_) => ACTING_SINCE.get().max(queue.noted_arrival),
        None => now,
    }
}
