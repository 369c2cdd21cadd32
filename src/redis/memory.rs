//! Whether the server has memory for more data.

use super::raw;
use std::os::raw::c_int;

/// Whether the server uses more memory than `maxmemory` allows, so that it refuses commands that add
/// data. Asks the server each time, because one call of the module can add much.
pub fn is_full() -> bool {
    // SAFETY: the function takes a null context, and then leaves out what is about a client.
    let flags = unsafe { api!(RedisModule_GetContextFlags(std::ptr::null_mut())) };
    flags & raw::REDISMODULE_CTX_FLAGS_OOM as c_int != 0
}
