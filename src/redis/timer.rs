//! The module's timer. There is only one.
//!
//! The server orders its timers by the wall clock, so a step back of the wall clock freezes them.
//! So the timer is never set far ahead, and the handler of the cron event runs what a frozen timer
//! has missed.

use super::guard::contain;
use super::{raw, Context};
use std::cell::Cell;
use std::os::raw::{c_int, c_void};
use std::ptr;

/// The longest delay in milliseconds, and so the longest time by which a step of the wall clock can
/// delay the timer.
pub const LONGEST_MS: u64 = 1000;

thread_local! {
    static HANDLER: Cell<Option<fn(&mut Context)>> = const { Cell::new(None) };
    static PENDING: Cell<Option<raw::RedisModuleTimerID>> = const { Cell::new(None) };
}

/// Installs the function that runs when the timer fires.
pub fn install(handler: fn(&mut Context)) {
    HANDLER.set(Some(handler));
}

/// Sets the timer to fire in `delay_ms` milliseconds, or in [`LONGEST_MS`] if that is sooner. This
/// replaces the earlier setting. Costs about 200 ns, so call it only if the time has changed.
pub fn arm(ctx: &Context, delay_ms: u64) {
    disarm(ctx);
    let delay = delay_ms.min(LONGEST_MS) as i64;
    // SAFETY: the context is live.
    let id = unsafe {
        api!(RedisModule_CreateTimer(
            ctx.as_ptr(),
            delay,
            Some(fire),
            ptr::null_mut()
        ))
    };
    PENDING.set(Some(id));
}

/// Stops the timer, if it is set.
pub fn disarm(ctx: &Context) {
    if let Some(id) = PENDING.take() {
        // SAFETY: the context is live. The id is never that of a timer whose callback is running
        // (see `fire`), which the server frees itself.
        let _: c_int = unsafe { api!(RedisModule_StopTimer(ctx.as_ptr(), id, ptr::null_mut())) };
    }
}

/// Whether the timer is set.
pub fn is_armed() -> bool {
    PENDING.get().is_some()
}

unsafe extern "C" fn fire(ctx: *mut raw::RedisModuleCtx, _: *mut c_void) {
    PENDING.set(None);
    contain((), || {
        // SAFETY: the context is the server's, for this call.
        let mut context = unsafe { Context::new(ctx) };
        if let Some(handler) = HANDLER.get() {
            handler(&mut context);
        }
    });
}
