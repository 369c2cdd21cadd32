//! A timer for work that nobody waits for. It only notes that it has fired: the work is done before
//! the server sleeps, where a step back of the wall clock cannot make timers fire again and again.

use super::{raw, Context};
use std::cell::Cell;
use std::os::raw::c_void;
use std::ptr;

thread_local! {
    static HAS_FIRED: Cell<bool> = const { Cell::new(false) };
    static IS_SET: Cell<bool> = const { Cell::new(false) };
}

/// Sets the timer to fire in `delay_ms` milliseconds, unless it is set.
pub fn arm(ctx: &Context, delay_ms: u64) {
    if IS_SET.replace(true) {
        return;
    }
    // SAFETY: the context is live.
    unsafe {
        api!(RedisModule_CreateTimer(
            ctx.as_ptr(),
            delay_ms as i64,
            Some(fire),
            ptr::null_mut()
        ))
    };
}

/// Whether the timer has fired since the last call.
#[inline]
pub fn has_fired() -> bool {
    HAS_FIRED.replace(false)
}

unsafe extern "C" fn fire(_: *mut raw::RedisModuleCtx, _: *mut c_void) {
    IS_SET.set(false);
    HAS_FIRED.set(true);
}
