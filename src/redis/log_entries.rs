//! Log entries of one call that are replicated as one command.

use super::name::string_bytes;
use super::{raw, Name};
use std::os::raw::c_char;
use std::ptr;

/// The collected log entries of one queue.
pub(super) struct LogEntries {
    name: *mut raw::RedisModuleString,
    entries: Vec<*mut raw::RedisModuleString>,
}

/// Makes a string of the server that the module owns.
fn string(bytes: &[u8]) -> *mut raw::RedisModuleString {
    // SAFETY: a string without a context is ours until we free it.
    unsafe {
        api!(RedisModule_CreateString(
            ptr::null_mut(),
            bytes.as_ptr().cast::<c_char>(),
            bytes.len()
        ))
    }
}

impl LogEntries {
    pub(super) fn of(name: Name<'_>) -> LogEntries {
        LogEntries {
            name: string(name.bytes()),
            entries: Vec::new(),
        }
    }

    /// Whether these are log entries of the queue with this name.
    pub(super) fn are_of(&self, name: Name<'_>) -> bool {
        // SAFETY: the module owns the string.
        unsafe { string_bytes(self.name) == name.bytes() }
    }

    pub(super) fn add(&mut self, entry: &[u8]) {
        self.entries.push(string(entry));
    }

    /// Replicates them as `DQ.OP name entry [entry ...]`.
    ///
    /// # Safety
    /// `ctx` must be the live context of the call.
    pub(super) unsafe fn send(&mut self, ctx: *mut raw::RedisModuleCtx) {
        // SAFETY: the caller guarantees that the context is live. The format gives the types of the
        // arguments, and the server retains the strings as long as it needs them.
        unsafe {
            api!(RedisModule_Replicate(
                ctx,
                c"DQ.OP".as_ptr(),
                c"sv".as_ptr(),
                self.name,
                self.entries.as_mut_ptr(),
                self.entries.len()
            ));
        }
    }
}

impl Drop for LogEntries {
    fn drop(&mut self) {
        for string in self.entries.iter().chain([&self.name]) {
            // SAFETY: made by us without a context, freed once.
            unsafe { api!(RedisModule_FreeString(ptr::null_mut(), *string)) }
        }
    }
}
