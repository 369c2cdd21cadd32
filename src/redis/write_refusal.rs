//! Whether the server refuses the writes of its clients: a primary with too few good replicas
//! (min-replicas-to-write), and a server whose last save or append has failed
//! (stop-writes-on-bgsave-error).
//!
//! Such a server must not deliver either. A consumer could not settle what it gets, and the server
//! that takes over would deliver it once more.

use super::{clock, raw, Context};
use std::ffi::CStr;
use std::os::raw::{c_char, c_int};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// For how long an answer is used while the server takes writes, in microseconds. Asking costs some
/// 30 microseconds.
const VALID_US: u64 = 50_000;

static IS_REFUSING: AtomicBool = AtomicBool::new(false);
/// Until when the last answer is used, on the monotonic clock.
static VALID_UNTIL: AtomicU64 = AtomicU64::new(0);

/// Whether the server refuses writes. An answer is up to [`VALID_US`] old while it does not; while
/// it does, each call asks anew, so the end is seen at once.
pub(super) fn is_refusing(ctx: &Context) -> bool {
    let now = clock::monotonic_us();
    if now < VALID_UNTIL.load(Relaxed) && !IS_REFUSING.load(Relaxed) {
        return false;
    }
    let refuses = lacks_replicas(ctx) || has_disk_error(ctx);
    IS_REFUSING.store(refuses, Relaxed);
    VALID_UNTIL.store(now + VALID_US, Relaxed);
    refuses
}

/// Whether there are fewer good replicas than min-replicas-to-write asks for.
fn lacks_replicas(ctx: &Context) -> bool {
    let good = with_info(ctx, c"replication", |info| {
        // The server has this field only where both settings of replicas are set.
        info.number(c"min_slaves_good_slaves")
    });
    let needed = |good| {
        setting(ctx, c"min-replicas-to-write", |text| {
            number(text) > Some(good)
        })
    };
    good.flatten().is_some_and(needed)
}

/// Whether the last save or append has failed, and the server refuses writes for it (server.c,
/// writeCommandsDeniedByDiskError).
fn has_disk_error(ctx: &Context) -> bool {
    let failed = with_info(ctx, c"persistence", |info| {
        let is_bad = |field| info.text(field, |text| text == b"err") == Some(true);
        (
            is_bad(c"rdb_last_bgsave_status"),
            is_bad(c"aof_last_write_status"),
        )
    });
    match failed {
        Some((_, true)) => true,
        Some((true, false)) => {
            setting(ctx, c"stop-writes-on-bgsave-error", |text| text == b"yes")
                && setting(ctx, c"save", |text| !text.is_empty())
        }
        _ => false,
    }
}

/// Whether a FAILOVER of this primary is under way.
pub(super) fn is_failing_over(ctx: &Context) -> bool {
    let is_none = with_info(ctx, c"replication", |info| {
        info.text(c"master_failover_state", |text| text == b"no-failover")
    });
    is_none.flatten() == Some(false)
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// A section of INFO.
struct Section(NonNull<raw::RedisModuleServerInfoData>);

impl Section {
    /// A number, or `None` where the section has no such field.
    fn number(&self, field: &CStr) -> Option<u64> {
        let mut error: c_int = 0;
        // SAFETY: the data lives as long as self.
        let value = unsafe {
            api!(RedisModule_ServerInfoGetFieldUnsigned(
                self.0.as_ptr(),
                field.as_ptr(),
                &mut error
            ))
        };
        (error == raw::REDISMODULE_OK as c_int).then_some(value)
    }

    /// Runs `use_it` with a field, if the section has it.
    fn text<R>(&self, field: &CStr, use_it: impl FnOnce(&[u8]) -> R) -> Option<R> {
        // SAFETY: the data lives as long as self, and with it the C string.
        unsafe {
            let text = api!(RedisModule_ServerInfoGetFieldC(
                self.0.as_ptr(),
                field.as_ptr()
            ));
            (!text.is_null()).then(|| use_it(CStr::from_ptr(text).to_bytes()))
        }
    }
}

/// Runs `use_it` with a section of INFO, if the server has it.
fn with_info<R>(ctx: &Context, section: &CStr, use_it: impl FnOnce(&Section) -> R) -> Option<R> {
    // SAFETY: the context is live, and the data is freed once.
    unsafe {
        let data = NonNull::new(api!(RedisModule_GetServerInfo(
            ctx.as_ptr(),
            section.as_ptr()
        )))?;
        let result = use_it(&Section(data));
        api!(RedisModule_FreeServerInfo(ctx.as_ptr(), data.as_ptr()));
        Some(result)
    }
}

/// Whether `is_met` holds for a setting of the server. False where the server does not tell it.
fn setting(ctx: &Context, name: &CStr, is_met: impl FnOnce(&[u8]) -> bool) -> bool {
    // SAFETY: the context is live, the format gives the types of the arguments, the elements of the
    // reply live until it is freed, and it is freed once.
    unsafe {
        let reply = api!(RedisModule_Call(
            ctx.as_ptr(),
            c"CONFIG".as_ptr(),
            c"cc".as_ptr(),
            c"GET".as_ptr(),
            name.as_ptr()
        ));
        if reply.is_null() {
            return false;
        }
        let value = api!(RedisModule_CallReplyArrayElement(reply, 1));
        let mut length = 0;
        let text: *const c_char = match value.is_null() {
            true => std::ptr::null(),
            false => api!(RedisModule_CallReplyStringPtr(value, &mut length)),
        };
        let met = !text.is_null() && is_met(std::slice::from_raw_parts(text.cast(), length));
        api!(RedisModule_FreeCallReply(reply));
        met
    }
}
