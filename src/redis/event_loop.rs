//! The server's event loop: the moment before it sleeps.
//!
//! Each turn of the loop runs commands and timers; then, before it waits for
//! the network again, the server tells modules. What replies and records come
//! of that still goes out in this turn: neither the append-only file nor the
//! clients have been written to (server.c, beforeSleep). It is no part of a
//! command, so that replicating is allowed, as in a timer: all of it is sent
//! when the event's context is freed.
//!
//! Loops inside a turn, which serve clients while the server is loading or a
//! script takes long, tell nothing.

use super::guard::contain;
use super::{raw, Context};
use std::cell::Cell;
use std::os::raw::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

thread_local! {
    static HANDLER: Cell<Option<fn(&mut Context)>> = const { Cell::new(None) };
}

/// Whether the loop is between waking and the moment before it sleeps.
static IS_TURNING: AtomicBool = AtomicBool::new(false);
/// Whether it has been asked to turn once more.
static IS_ASKED: AtomicBool = AtomicBool::new(false);

/// Has `handler` called before each sleep; false where the server refuses.
/// That is once for each turn, which costs the server some 100 ns for every
/// module that listens: with nothing to do, a handler must return at once.
pub fn install(ctx: &Context, handler: fn(&mut Context)) -> bool {
    HANDLER.set(Some(handler));
    let event = raw::RedisModuleEvent {
        id: raw::REDISMODULE_EVENT_EVENTLOOP,
        dataver: 1,
    };
    // SAFETY: the context is live.
    let done = unsafe {
        api!(RedisModule_SubscribeToServerEvent(
            ctx.as_ptr(),
            event,
            Some(told)
        ))
    };
    done == raw::REDISMODULE_OK as c_int
}

/// Sees to it that the handler runs, and timers are heeded: at the end of this
/// turn, or where that has come, after one more that does not wait for the
/// network. 7.0 runs the commands of clients that have just been unblocked after
/// the handler, and reckons how long it sleeps before both (ae.c): a timer set
/// by then is up to 100 ms late.
pub fn turn_again() {
    if IS_TURNING.load(Relaxed) || IS_ASKED.swap(true, Relaxed) {
        return;
    }
    // SAFETY: the function takes anything.
    unsafe {
        api!(RedisModule_EventLoopAddOneShot(
            Some(woken),
            ptr::null_mut()
        ))
    };
}

/// Being called has woken the loop: that is all.
unsafe extern "C" fn woken(_: *mut c_void) {}

unsafe extern "C" fn told(
    ctx: *mut raw::RedisModuleCtx,
    _: raw::RedisModuleEvent,
    sub: u64,
    _: *mut c_void,
) {
    if sub != raw::REDISMODULE_SUBEVENT_EVENTLOOP_BEFORE_SLEEP {
        IS_TURNING.store(true, Relaxed);
        IS_ASKED.store(false, Relaxed);
        return;
    }
    IS_TURNING.store(false, Relaxed);
    contain((), || {
        // SAFETY: the context is the event's.
        let mut context = unsafe { Context::new(ctx) };
        if let Some(handler) = HANDLER.get() {
            handler(&mut context);
        }
    });
}
