//! The only way from C into Rust. A panic that left an `extern "C"` function
//! would end the server; here it ends the one call.
//!
//! Operations check everything before they change anything, so a panic in the
//! checks has changed nothing. One in a change is a bug that the log names; the
//! server lives on, because the other queues have no part in it.

use super::log::warn;
use super::{raw, Context};
use std::panic::{self, AssertUnwindSafe};

/// Runs `body`; where it panics, the result is `otherwise`.
pub(super) fn contain<R>(otherwise: R, body: impl FnOnce() -> R) -> R {
    panic::catch_unwind(AssertUnwindSafe(body)).unwrap_or(otherwise)
}

/// Runs the body of a command; where it panics, the client gets an error.
///
/// # Safety
/// `ctx` must be the live context of a call that owes a reply.
pub(super) unsafe fn contain_command(
    ctx: *mut raw::RedisModuleCtx,
    body: impl FnOnce(&mut Context),
) {
    // SAFETY: the caller vouches for the context, and this is its only use.
    let mut context = unsafe { Context::of_command(ctx) };
    if panic::catch_unwind(AssertUnwindSafe(|| body(&mut context))).is_err() {
        context.reply().error("ERR internal error in the dq module");
    }
}

/// Sends the place and text of every panic to the server's log instead of to
/// standard error, which a server that runs as a daemon has closed.
pub(super) fn log_panics() {
    panic::set_hook(Box::new(|info| {
        warn(&format!("internal error: {info}"));
    }));
}
