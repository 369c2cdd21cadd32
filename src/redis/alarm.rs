//! Wakes the server at a microsecond. The server itself sleeps for whole milliseconds, rounded up,
//! and its timers are set in whole milliseconds as well. So a timer alone is up to two milliseconds
//! late, one on average.
//!
//! The alarm is a timer of the kernel (timerfd) that the server's event loop watches. When it goes
//! off, the loop wakes, and the module's timer is made to fire in the same turn. The timer stays set,
//! so where there is no alarm (no descriptor left) it fires a little later.

use super::guard::contain;
use super::raw;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::time::{
    timerfd_create, timerfd_settime, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags,
    Timespec,
};
use std::cell::OnceCell;
use std::os::raw::{c_int, c_void};
use std::ptr;

/// The alarm, and the function that it calls in a separate context, because an event of a
/// descriptor has none.
struct Alarm {
    fd: OwnedFd,
    ctx: *mut raw::RedisModuleCtx,
    ring: fn(*mut raw::RedisModuleCtx),
}

thread_local! {
    /// Empty if there is no alarm.
    static ALARM: OnceCell<Alarm> = const { OnceCell::new() };
}

/// Makes the alarm, which calls `ring` in the server's thread. Without a descriptor for it there is
/// none.
///
/// # Safety
/// `ctx` must be a live context of the module. It is called once.
pub unsafe fn install(ctx: *mut raw::RedisModuleCtx, ring: fn(*mut raw::RedisModuleCtx)) {
    let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
    let Ok(fd) = timerfd_create(TimerfdClockId::Monotonic, flags) else {
        return;
    };
    // SAFETY: the caller guarantees it. The descriptor stays open as long as the loop watches it,
    // which is for ever, and the callback ignores its data.
    let is_watched = unsafe {
        api!(RedisModule_EventLoopAdd(
            fd.as_raw_fd(),
            raw::REDISMODULE_EVENTLOOP_READABLE as c_int,
            Some(went_off),
            ptr::null_mut()
        )) == raw::REDISMODULE_OK as c_int
    };
    if is_watched {
        // SAFETY: the caller guarantees it.
        let ctx = unsafe { api!(RedisModule_GetDetachedThreadSafeContext(ctx)) };
        ALARM.with(|alarm| alarm.set(Alarm { fd, ctx, ring }).ok());
    }
}

/// Sets the alarm to go off in `delay_us` microseconds, which replaces an earlier setting. One that
/// goes off too early does no harm. Costs a system call.
pub fn set(delay_us: u64) {
    ALARM.with(|alarm| {
        let Some(alarm) = alarm.get() else {
            return;
        };
        // A delay of nought would stop it.
        let delay_us = delay_us.max(1);
        let delay = Itimerspec {
            it_interval: Timespec::default(),
            it_value: Timespec {
                tv_sec: (delay_us / 1_000_000) as i64,
                tv_nsec: (delay_us % 1_000_000 * 1000) as _,
            },
        };
        // The call cannot fail with a valid delay; if it did, the timer would fire a little later.
        let _ = timerfd_settime(&alarm.fd, TimerfdTimerFlags::empty(), &delay);
    });
}

unsafe extern "C" fn went_off(_: c_int, _: *mut c_void, _: c_int) {
    contain((), || {
        ALARM.with(|alarm| {
            if let Some(alarm) = alarm.get() {
                // Reading stops the descriptor from being readable.
                let _ = rustix::io::read(&alarm.fd, &mut [0; 8]);
                (alarm.ring)(alarm.ctx);
            }
        });
    });
}
