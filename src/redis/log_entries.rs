//! Log entries of one call that are replicated as one command.

use super::name::string_bytes;
use super::{raw, Name};
use std::os::raw::c_char;
use std::ptr;

/// The collected log entries of one call.
pub(super) struct LogEntries {
    /// Whether each entry comes with the name of its queue. Else all are of one queue, whose name
    /// comes first.
    are_of_several: bool,
    /// The arguments of the command. The module owns them.
    words: Vec<*mut raw::RedisModuleString>,
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
    /// Collects log entries of one queue.
    pub(super) fn of(name: Name<'_>) -> LogEntries {
        LogEntries {
            are_of_several: false,
            words: vec![string(name.bytes())],
        }
    }

    /// Collects log entries of several queues.
    pub(super) fn of_several() -> LogEntries {
        LogEntries {
            are_of_several: true,
            words: Vec::new(),
        }
    }

    /// Whether log entries of the queue with this name can be added.
    pub(super) fn may_be_of(&self, name: Name<'_>) -> bool {
        let first = self.words.first();
        // SAFETY: the module owns the string.
        self.are_of_several
            || first.is_some_and(|first| unsafe { string_bytes(*first) } == name.bytes())
    }

    pub(super) fn add(&mut self, name: Name<'_>, entry: &[u8]) {
        if self.are_of_several {
            self.words.push(string(name.bytes()));
        }
        self.words.push(string(entry));
    }

    /// Replicates them: as `DQ.OP name entry [entry ...]` those of one queue, as `DQ.OPS name entry
    /// [name entry ...]` those of several. Does nothing if there are none.
    ///
    /// # Safety
    /// `ctx` must be the live context of the call.
    pub(super) unsafe fn send(&mut self, ctx: *mut raw::RedisModuleCtx) {
        if self.words.is_empty() {
            return;
        }
        let command = match self.are_of_several && self.words.len() > 2 {
            true => c"DQ.OPS",
            false => c"DQ.OP",
        };
        // SAFETY: the caller guarantees that the context is live. The format gives the types of the
        // arguments, and the server retains the strings as long as it needs them.
        unsafe {
            api!(RedisModule_Replicate(
                ctx,
                command.as_ptr(),
                c"v".as_ptr(),
                self.words.as_mut_ptr(),
                self.words.len()
            ));
        }
    }
}

impl Drop for LogEntries {
    fn drop(&mut self) {
        for string in &self.words {
            // SAFETY: made by us without a context, freed once.
            unsafe { api!(RedisModule_FreeString(ptr::null_mut(), *string)) }
        }
    }
}
