//! When the next slice of which queue is to run, and the timer that is set for it.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::redis::{clock, deadlines, event_loop, timer, Context};
use dq_queue::{Millis, Queue, NEVER};

use super::due_index::{self, DueIndex};
use super::Address;

/// While a pause or failover is on, the timer tries again after this time, in ms.
pub const ASK_AGAIN_MS: Millis = 20;

/// The term of this server, from 1.
static TERM: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static INDEX: RefCell<DueIndex> = RefCell::default();
    /// When the timer is to fire, NEVER if it is not set.
    static SET_FOR: Cell<Millis> = const { Cell::new(NEVER) };
    /// Since when this server has been able to fire schedules.
    static ACTING_SINCE: Cell<Millis> = const { Cell::new(0) };
}

/// Changes or reads the index.
pub fn with_index<R>(use_it: impl FnOnce(&mut DueIndex) -> R) -> R {
    INDEX.with_borrow_mut(use_it)
}

/// Schedules the next slice of a queue, and ensures that the timer fires in time.
pub fn schedule(ctx: &Context, db: i32, key: &[u8], wake: Millis) {
    with_index(|index| index.schedule(db, key, wake));
    ensure(ctx, wake);
}

/// Ensures that the timer fires at `wake` at the latest, even if the server has already decided
/// how long it sleeps. On a replica there is nothing to fire for.
pub fn ensure(ctx: &Context, wake: Millis) {
    if wake < SET_FOR.get() && ctx.is_primary() {
        set(ctx, wake);
    }
}

/// Ensures that the timer fires, on a replica too, when the first timeout of a blocked client ends.
pub fn ensure_deadlines(ctx: &Context) {
    if let Some(delay) = deadlines::next_in_ms() {
        let wake = clock::now_ms().saturating_add(delay);
        if wake < SET_FOR.get() {
            set(ctx, wake);
        }
    }
}

/// Ends the waits whose timeout is over. Steps of the wall clock do not change when that is. But a
/// step back freezes the timer; then the server's cron calls this.
pub fn end_waits(ctx: &Context) {
    deadlines::end_overdue();
    ensure_deadlines(ctx);
}

fn set(ctx: &Context, wake: Millis) {
    timer::arm(ctx, due_index::delay(wake, clock::now_us()));
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

/// The queue whose slice is due first, if one is due.
pub fn next_due(now: Millis) -> Option<(Millis, Address)> {
    with_index(|index| index.next()).filter(|(wake, _)| *wake <= now)
}

/// Runs overdue slices now. The server's timers can be late by any time, because the wall clock
/// was set back.
pub fn run_overdue(ctx: &Context) {
    let set_for = SET_FOR.get();
    let next = with_index(|index| index.next()).map_or(NEVER, |(wake, _)| wake);
    let overdue = set_for.min(next) < clock::now_ms().saturating_sub(1);
    if (overdue || !timer::is_armed() && next != NEVER) && ctx.is_primary() {
        SET_FOR.set(NEVER);
        ensure(ctx, next.min(set_for));
    }
}

/// Begins a new term: this server can fire schedules from now on. Fire times before this were
/// missed.
pub fn start_acting() {
    ACTING_SINCE.set(clock::now_ms());
    TERM.fetch_add(1, Relaxed);
}

/// The number of times this server has begun to act: when it was started, when it had loaded its
/// data, when it became a primary. Others may have changed the same queues before that.
#[inline]
pub fn term() -> u64 {
    TERM.load(Relaxed)
}

/// Since when the schedules of a queue can fire: from now on, where no slice of it has run yet.
pub fn firing_since(queue: &Queue, now: Millis) -> Millis {
    match queue.noted_wake {
        Some(_) => ACTING_SINCE.get().max(queue.noted_arrival),
        None => now,
    }
}
