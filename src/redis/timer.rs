//! The one timer of the module.
//!
//! The server keys its timers by the wall clock: a step back freezes them. So
//! none is ever set far ahead, and the cron event looks after them.

use super::guard::contain;
use super::{raw, Context};
use std::cell::Cell;
use std::os::raw::{c_int, c_void};
use std::ptr;

/// The longest delay: what a step of the wall clock can cost.
pub const LONGEST_MS: u64 = 1000;

thread_local! {
    static HANDLER: Cell<Option<fn(&mut Context)>> = const { Cell::new(None) };
    static PENDING: Cell<Option<raw::RedisModuleTimerID>> = const { Cell::new(None) };
}

/// Says what the timer does.
pub fn install(handler: fn(&mut Context)) {
    HANDLER.set(Some(handler));
}

/// Sets the timer to fire in `delay_ms` milliseconds, at most [`LONGEST_MS`],
/// and forgets what it was set to. Costs about 200 ns: only when the time to
/// wake has really moved.
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
        // SAFETY: the context is live. The id is never that of a timer whose
        // callback is running (see fire): the server frees that one itself.
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
        // SAFETY: the server's, for this call.
        let mut context = unsafe { Context::new(ctx) };
        if let Some(handler) = HANDLER.get() {
            handler(&mut context);
        }
    });
}
