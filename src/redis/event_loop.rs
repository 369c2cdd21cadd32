//! The server's event loop, and its event before the server sleeps.
//!
//! Each turn of the loop runs commands and timers. Then, before it waits for the network again, the
//! server notifies modules. Replies and log entries that a module writes in this event are still
//! sent in the same turn, because the server writes the append-only file and the replies afterwards
//! (server.c, beforeSleep). The event is not part of a command, so replicating is allowed, as in a
//! timer: log entries are sent when the context of the event is freed.
//!
//! There is no event for nested loops, which serve clients while the server is loading or a script
//! runs for long.

use super::guard::contain;
use super::{raw, Context};
use std::cell::Cell;
use std::os::raw::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

thread_local! {
    static WOKEN: Cell<Option<fn()>> = const { Cell::new(None) };
    static HANDLER: Cell<Option<fn(&mut Context)>> = const { Cell::new(None) };
}

/// Whether the loop is between waking and its event before it sleeps.
static IS_TURNING: AtomicBool = AtomicBool::new(false);
/// Whether another turn has been requested.
static IS_REQUESTED: AtomicBool = AtomicBool::new(false);

/// Installs `woke`, which runs after each sleep, before the sockets are read, and `handler`, which
/// runs before each sleep: once in each turn of the loop. Returns false if the server refuses. The
/// events cost the server some 100 ns in each turn for every module that subscribes to them, so a
/// handler with nothing to do must return at once.
pub fn install(ctx: &Context, woke: fn(), handler: fn(&mut Context)) -> bool {
    WOKEN.set(Some(woke));
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
            Some(changed)
        ))
    };
    done == raw::REDISMODULE_OK as c_int
}

/// Ensures that the handler runs soon and that the server takes new timers into account: at the end
/// of this turn, or if the end has already come, after another turn that does not wait for the
/// network. This is needed because Redis 7.0 computes how long it sleeps (ae.c) before it runs the
/// handler and then the commands of clients that have just been unblocked: a timer that is set
/// there would be up to 100 ms late.
pub fn turn_again() {
    if IS_TURNING.load(Relaxed) || IS_REQUESTED.swap(true, Relaxed) {
        return;
    }
    // SAFETY: the callback ignores its argument.
    unsafe {
        api!(RedisModule_EventLoopAddOneShot(
            Some(woken),
            ptr::null_mut()
        ))
    };
}

/// Does nothing: scheduling it has already woken the loop.
unsafe extern "C" fn woken(_: *mut c_void) {}

/// The loop has woken, or is about to sleep.
unsafe extern "C" fn changed(
    ctx: *mut raw::RedisModuleCtx,
    _: raw::RedisModuleEvent,
    sub: u64,
    _: *mut c_void,
) {
    if sub != raw::REDISMODULE_SUBEVENT_EVENTLOOP_BEFORE_SLEEP {
        IS_TURNING.store(true, Relaxed);
        IS_REQUESTED.store(false, Relaxed);
        if let Some(woke) = WOKEN.get() {
            woke();
        }
        return;
    }
    IS_TURNING.store(false, Relaxed);
    contain((), || {
        // SAFETY: the context is valid during the event.
        let mut context = unsafe { Context::new(ctx) };
        if let Some(handler) = HANDLER.get() {
            handler(&mut context);
        }
    });
}
