//! Records of one call that are to travel as one command.

use super::name::string_bytes;
use super::{raw, Name};
use std::os::raw::c_char;
use std::ptr;

/// What was gathered for one queue.
pub(super) struct Records {
    name: *mut raw::RedisModuleString,
    records: Vec<*mut raw::RedisModuleString>,
}

/// A string of our own.
fn string(bytes: &[u8]) -> *mut raw::RedisModuleString {
    // SAFETY: without a context the string is ours until we free it.
    unsafe {
        api!(RedisModule_CreateString(
            ptr::null_mut(),
            bytes.as_ptr().cast::<c_char>(),
            bytes.len()
        ))
    }
}

impl Records {
    pub(super) fn of(name: Name<'_>) -> Records {
        Records {
            name: string(name.bytes()),
            records: Vec::new(),
        }
    }

    /// Whether these are the records of this queue.
    pub(super) fn are_of(&self, name: Name<'_>) -> bool {
        // SAFETY: ours.
        unsafe { string_bytes(self.name) == name.bytes() }
    }

    pub(super) fn add(&mut self, record: &[u8]) {
        self.records.push(string(record));
    }

    /// Replicates them: `DQ.OP name record...`.
    ///
    /// # Safety
    /// `ctx` must be the live context of the call.
    pub(super) unsafe fn send(&mut self, ctx: *mut raw::RedisModuleCtx) {
        // SAFETY: the context is vouched for; the format tells the types of
        // what follows, and the server keeps the strings as long as it needs.
        unsafe {
            api!(RedisModule_Replicate(
                ctx,
                c"DQ.OP".as_ptr(),
                c"sv".as_ptr(),
                self.name,
                self.records.as_mut_ptr(),
                self.records.len()
            ));
        }
    }
}

impl Drop for Records {
    fn drop(&mut self) {
        for string in self.records.iter().chain([&self.name]) {
            // SAFETY: made by us without a context, freed once.
            unsafe { api!(RedisModule_FreeString(ptr::null_mut(), *string)) }
        }
    }
}
