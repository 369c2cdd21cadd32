//! Whether commands may be replays: commands that this server's primary has sent, or that come from
//! its own append-only file.
//!
//! Asking the server about the client of a command is 2 % of the instructions of a SEND. On a
//! primary that is neither loading nor a node of a cluster no client replays, so there only the
//! client's id is looked at. The module finds out in the server's cron that the server is such a
//! primary, and assumes that it no longer is as soon as it changes its role or loads a file.

use super::context::{CTX_CLUSTER, CTX_PRIMARY};
use super::{raw, Context};
use std::os::raw::c_int;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Only the server's main thread uses it.
static MAY_COME: AtomicBool = AtomicBool::new(true);

const CTX_REPLAY: c_int =
    (raw::REDISMODULE_CTX_FLAGS_REPLICATED | raw::REDISMODULE_CTX_FLAGS_LOADING) as c_int;
/// The id of the client that replays the append-only file.
const AOF_CLIENT: u64 = u64::MAX;

/// A node of a cluster gets the keys of a slot from another primary, as commands.
const CTX_OTHERS_SEND: c_int = CTX_CLUSTER
    | (raw::REDISMODULE_CTX_FLAGS_LOADING | raw::REDISMODULE_CTX_FLAGS_ASYNC_LOADING) as c_int;

impl Context {
    /// Whether the command comes from this server's primary or from its own append-only file.
    #[inline]
    pub fn is_replay(&self) -> bool {
        (MAY_COME.load(Relaxed) && self.flags() & CTX_REPLAY != 0) || self.client_id() == AOF_CLIENT
    }
}

/// Assumes from now on that commands may be replays.
pub(super) fn assume() {
    MAY_COME.store(true, Relaxed);
}

/// Checks whether commands may still be replays. Called by the server's cron.
pub(super) fn check(ctx: &Context) {
    if MAY_COME.load(Relaxed) {
        let flags = ctx.flags();
        MAY_COME.store(
            flags & CTX_PRIMARY == 0 || flags & CTX_OTHERS_SEND != 0,
            Relaxed,
        );
    }
}
