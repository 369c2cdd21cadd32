//! Whether anybody follows what this server does: an append-only file, a
//! replica, or a backlog that one may come back to.
//!
//! Handing a record over is a third of all that a SEND costs the server, which
//! throws it away where nobody follows; its own commands are spared that. It
//! tells modules of the file only. So replicas are taken to be there until it
//! says that there is neither one nor a backlog; from then on there is none
//! until a child is forked: every replica that comes without a backlog begins
//! with a snapshot, which has all that was done before. Between its coming and
//! the fork the server keeps what it is told, but gives it to nobody.

use super::{raw, Context};
use std::os::raw::{c_char, c_int, c_void};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// Only the server's main thread uses these.
static MAY_HAVE_REPLICAS: AtomicBool = AtomicBool::new(true);
static ASKED: AtomicU32 = AtomicU32::new(0);

/// The server is asked with one of so many calls of its cron.
const ASK_EACH: u32 = 10;

const CTX_AOF: c_int = raw::REDISMODULE_CTX_FLAGS_AOF as c_int;
/// Slots on the move are followed by other nodes.
const CTX_CLUSTER: c_int = raw::REDISMODULE_CTX_FLAGS_CLUSTER as c_int;
/// A replica has a backlog of its primary's; a loaded file may bring one.
const CTX_PRIMARY: c_int = raw::REDISMODULE_CTX_FLAGS_MASTER as c_int;
const CTX_NOT_NOW: c_int =
    (raw::REDISMODULE_CTX_FLAGS_LOADING | raw::REDISMODULE_CTX_FLAGS_ASYNC_LOADING) as c_int;

impl Context {
    /// Whether anybody follows what is done now.
    #[inline]
    pub(super) fn is_followed(&self) -> bool {
        MAY_HAVE_REPLICAS.load(Relaxed) || self.flags() & CTX_AOF != 0
    }
}

/// A replica or a backlog may be there from now on.
pub(super) fn may_have_come() {
    MAY_HAVE_REPLICAS.store(true, Relaxed);
}

/// A child is forked, or ends.
pub(super) unsafe extern "C" fn forked(
    _: *mut raw::RedisModuleCtx,
    _: raw::RedisModuleEvent,
    _: u64,
    _: *mut c_void,
) {
    may_have_come();
}

/// Asks the server now and then.
pub(super) fn look(ctx: &Context) {
    if !MAY_HAVE_REPLICAS.load(Relaxed) || !ASKED.fetch_add(1, Relaxed).is_multiple_of(ASK_EACH) {
        return;
    }
    let flags = ctx.flags();
    if flags & CTX_PRIMARY == 0 || flags & (CTX_AOF | CTX_CLUSTER | CTX_NOT_NOW) != 0 {
        return;
    }
    if is_alone(ctx) {
        MAY_HAVE_REPLICAS.store(false, Relaxed);
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
