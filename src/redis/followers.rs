//! Whether this server has followers, which need log entries: an append-only file, a replica, or a
//! backlog from which a replica may continue.
//!
//! Replicating a log entry is a third of the cost of a SEND. The server discards the entry if there
//! is no follower; for its own commands it does not even compose one. But it reports to modules
//! only whether there is an append-only file. So the module assumes that followers are present
//! until there is no append-only file and the server's INFO shows neither a replica nor a backlog.
//! From then on there is none until a child process is forked: an append-only file that is turned
//! on, and a replica that connects while there is no backlog, begin with a snapshot, which contains
//! all earlier changes. Commands that are replicated between that and the fork are not sent to any
//! follower.

use super::context::{CTX_CLUSTER, CTX_PRIMARY};
use super::{raw, Context};
use std::os::raw::{c_char, c_int};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// Only the server's main thread uses these.
static ARE_POSSIBLE: AtomicBool = AtomicBool::new(true);
static CRON_CALLS: AtomicU32 = AtomicU32::new(0);

/// INFO is read once in this many calls of the server's cron.
const CHECK_EACH: u32 = 10;

const CTX_AOF: c_int = raw::REDISMODULE_CTX_FLAGS_AOF as c_int;
const CTX_NOT_NOW: c_int =
    (raw::REDISMODULE_CTX_FLAGS_LOADING | raw::REDISMODULE_CTX_FLAGS_ASYNC_LOADING) as c_int;

impl Context {
    /// Whether this server may have followers now.
    #[inline]
    pub(super) fn is_followed(&self) -> bool {
        ARE_POSSIBLE.load(Relaxed)
    }
}

/// Assumes that a follower is present from now on.
pub(super) fn assume_present() {
    ARE_POSSIBLE.store(true, Relaxed);
}

/// Checks in regular intervals whether there is still a follower. Called by the server's cron.
pub(super) fn check(ctx: &Context) {
    if !ARE_POSSIBLE.load(Relaxed) || !CRON_CALLS.fetch_add(1, Relaxed).is_multiple_of(CHECK_EACH) {
        return;
    }
    // A replica has a backlog of its primary, and a loaded file may create one. In a cluster other
    // nodes follow slots that are being migrated.
    let flags = ctx.flags();
    if flags & CTX_PRIMARY == 0 || flags & (CTX_AOF | CTX_CLUSTER | CTX_NOT_NOW) != 0 {
        return;
    }
    if is_alone(ctx) {
        ARE_POSSIBLE.store(false, Relaxed);
    }
}

/// Whether the server has neither a replica nor a backlog.
fn is_alone(ctx: &Context) -> bool {
    // SAFETY: the context is live, and the data is freed once.
    unsafe {
        let data = api!(RedisModule_GetServerInfo(
            ctx.as_ptr(),
            c"replication".as_ptr()
        ));
        let Some(data) = NonNull::new(data) else {
            return false;
        };
        let is_none = |field: *const c_char| {
            let mut error: c_int = 0;
            let count = api!(RedisModule_ServerInfoGetFieldUnsigned(
                data.as_ptr(),
                field,
                &mut error
            ));
            error == raw::REDISMODULE_OK as c_int && count == 0
        };
        let alone =
            is_none(c"connected_slaves".as_ptr()) && is_none(c"repl_backlog_active".as_ptr());
        api!(RedisModule_FreeServerInfo(ctx.as_ptr(), data.as_ptr()));
        alone
    }
}
