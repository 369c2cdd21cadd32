//! The alarm of systems that have none: the server's own timer alone wakes it.

use super::raw;

/// Makes no alarm.
///
/// # Safety
/// There are no conditions. It is unsafe as the one of Linux is.
pub unsafe fn install(_: *mut raw::RedisModuleCtx, _: fn(*mut raw::RedisModuleCtx)) {}

/// Does nothing.
pub fn set(_: u64) {}
