//! The module's timer. There is only one timer, except for bursts of timers that fire at once.
//!
//! The server orders its timers by the wall clock, so a step back of the wall clock freezes them.
//! So the timer is never set far ahead, and the handler of the cron event runs what a frozen timer
//! has missed. An [`alarm`] wakes the server where it would sleep for too long.
//!
//! While the server runs its timers it compares them with a time that it has read once (module.c,
//! moduleTimerHandler). If the wall clock steps back after that, a timer that is set by a timer is
//! overdue at once, again and again, and the server does nothing else until the clock has caught
//! up. So a timer that has fired twice in one turn of the event loop is set at the end of the turn.

use super::guard::contain;
use super::{alarm, raw, Context};
use std::cell::Cell;
use std::os::raw::{c_int, c_void};
use std::ptr;

/// The longest delay in milliseconds, and so the longest time by which a step of the wall clock can
/// delay the timer.
pub const LONGEST_MS: u64 = 1000;

thread_local! {
    static HANDLER: Cell<Option<fn(&mut Context)>> = const { Cell::new(None) };
    static PENDING: Cell<Option<raw::RedisModuleTimerID>> = const { Cell::new(None) };
    /// How often the timer has fired in this turn of the event loop.
    static FIRES: Cell<u32> = const { Cell::new(0) };
    /// The delay in ms of the timer that is to be set at the end of this turn.
    static AT_END: Cell<Option<u64>> = const { Cell::new(None) };
    static BURST_HANDLER: Cell<Option<fn(&mut Context)>> = const { Cell::new(None) };
    /// The number of timers of the last burst that have not fired yet.
    static BURST: Cell<usize> = const { Cell::new(0) };
}

/// Installs the functions that run when the timer fires, and when each timer of a burst does.
pub fn install(ctx: &Context, handler: fn(&mut Context), of_burst: fn(&mut Context)) {
    HANDLER.set(Some(handler));
    BURST_HANDLER.set(Some(of_burst));
    // SAFETY: the context is live, and this is called once, when the module is loaded.
    unsafe { alarm::install(ctx.as_ptr(), fire_in_this_turn) };
}

/// Sets `count` timers that all fire in the next turn of the event loop, one after the other. Each
/// gets a context of its own, so each may replicate a log entry: the server wraps only the entries
/// of one context in a transaction. Does nothing while timers of the last burst have yet to fire.
///
/// Call it before the server sleeps, not from a timer: the server delays a timer that is set while
/// timers fire by a millisecond (module.c, moduleTimerHandler). It delays those that are set behind
/// such a timer, too, so this stops the other timer: [`arm`] it again afterwards. Costs about 200 ns
/// a timer.
pub fn burst(ctx: &Context, count: usize) {
    disarm(ctx);
    if BURST.get() > 0 {
        return;
    }
    // The server keeps its timers by the microsecond at which they are due, and searches the next
    // free one for each new timer (module.c, RM_CreateTimer). So each of these is overdue by
    // another number of milliseconds. The first one is due first: only then does the server install
    // its own timer once for all of them.
    for overdue_ms in (1..=count as i64).rev() {
        // SAFETY: the context is live.
        unsafe {
            api!(RedisModule_CreateTimer(
                ctx.as_ptr(),
                -overdue_ms,
                Some(fire_of_burst),
                ptr::null_mut()
            ))
        };
    }
    BURST.set(count);
}

/// Sets the timer to fire in `delay_us` microseconds, or in [`LONGEST_MS`] if that is sooner. This
/// replaces the earlier setting. Costs some 500 ns, so call it only if the time has changed.
pub fn arm(ctx: &Context, delay_us: u64) {
    if delay_us < LONGEST_MS * 1000 {
        alarm::set(delay_us);
    }
    // The delay is rounded up, so that the timer never fires early.
    arm_at(ctx.as_ptr(), delay_us.div_ceil(1000).min(LONGEST_MS));
}

/// Makes the timer fire in this turn of the event loop, if it is set: the server runs its timers
/// at the end of the turn.
fn fire_in_this_turn(ctx: *mut raw::RedisModuleCtx) {
    if is_armed() {
        arm_at(ctx, 0);
    }
}

fn arm_at(ctx: *mut raw::RedisModuleCtx, delay_ms: u64) {
    stop(ctx);
    if FIRES.get() > 1 {
        return AT_END.set(Some(delay_ms));
    }
    // SAFETY: the context is live.
    let id = unsafe {
        api!(RedisModule_CreateTimer(
            ctx,
            delay_ms as i64,
            Some(fire),
            ptr::null_mut()
        ))
    };
    PENDING.set(Some(id));
}

/// Ends a turn of the event loop: sets the timer if that had to wait for the end. Returns whether it
/// had to. Then the server may have decided already how long it sleeps.
pub fn end_turn(ctx: &Context) -> bool {
    FIRES.set(0);
    match AT_END.take() {
        Some(delay_ms) => {
            arm_at(ctx.as_ptr(), delay_ms);
            true
        }
        None => false,
    }
}

/// Stops the timer, if it is set.
pub fn disarm(ctx: &Context) {
    stop(ctx.as_ptr());
}

fn stop(ctx: *mut raw::RedisModuleCtx) {
    AT_END.set(None);
    if let Some(id) = PENDING.take() {
        // SAFETY: the context is live. The id is never that of a timer whose callback is running
        // (see `fire`), which the server frees itself.
        let _: c_int = unsafe { api!(RedisModule_StopTimer(ctx, id, ptr::null_mut())) };
    }
}

/// Whether the timer is set.
pub fn is_armed() -> bool {
    PENDING.get().is_some() || AT_END.get().is_some()
}

unsafe extern "C" fn fire(ctx: *mut raw::RedisModuleCtx, _: *mut c_void) {
    PENDING.set(None);
    FIRES.set(FIRES.get() + 1);
    // SAFETY: the context is valid for this call.
    unsafe { run(ctx, HANDLER.get()) };
}

unsafe extern "C" fn fire_of_burst(ctx: *mut raw::RedisModuleCtx, _: *mut c_void) {
    BURST.set(BURST.get().saturating_sub(1));
    // SAFETY: as above.
    unsafe { run(ctx, BURST_HANDLER.get()) };
}

/// # Safety
/// `ctx` must be the context of a timer that is firing.
unsafe fn run(ctx: *mut raw::RedisModuleCtx, handler: Option<fn(&mut Context)>) {
    contain((), || {
        // SAFETY: the caller guarantees it.
        let mut context = unsafe { Context::new(ctx) };
        if let Some(handler) = handler {
            handler(&mut context);
        }
    });
}
