//! Contains panics. All calls from C into Rust go through this file, because a panic that left an
//! `extern "C"` function would end the server. Here it ends only the one call.
//!
//! Operations check everything before they change anything, so a panic in the checks has changed
//! nothing. A panic in the middle of a change is a bug, which is logged. The server goes on,
//! because the other queues are not affected.

use super::faults::internal_error;
use super::{raw, Context};
use std::panic::{self, AssertUnwindSafe};

/// Runs `body`. Returns its result, or `otherwise` if it panics.
pub(super) fn contain<R>(otherwise: R, body: impl FnOnce() -> R) -> R {
    panic::catch_unwind(AssertUnwindSafe(body)).unwrap_or(otherwise)
}

/// Runs the body of a command. If it panics, the client gets an error.
///
/// # Safety
/// `ctx` must be the live context of a call that has no reply yet.
pub(super) unsafe fn contain_command(
    ctx: *mut raw::RedisModuleCtx,
    body: impl FnOnce(&mut Context),
) {
    // SAFETY: the caller guarantees that the context is live, and this is its only use.
    let mut context = unsafe { Context::of_command(ctx) };
    if panic::catch_unwind(AssertUnwindSafe(|| body(&mut context))).is_err() {
        context.reply().error("ERR internal error in the dq module");
    }
}

/// Counts every panic, and writes its location and text to the server's log instead of to standard error,
/// which is closed in a server that runs as a daemon.
pub(super) fn log_panics() {
    panic::set_hook(Box::new(|info| {
        internal_error(&info.to_string());
    }));
}
