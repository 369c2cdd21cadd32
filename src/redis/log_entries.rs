//! Log entries of one call that are replicated as one command.

use super::name::string_bytes;
use super::{raw, Name};
use std::os::raw::{c_char, c_int};
use std::ptr;

/// The collected log entries of one call: all of one database, and in a cluster all of one slot.
/// The module owns the strings.
pub(super) struct LogEntries {
    /// The database of their queues.
    db: i32,
    /// The slot of their queues, in a cluster.
    slot: Option<c_int>,
    /// The names of their queues, the last one last. A name comes again if another came between.
    names: Vec<*mut raw::RedisModuleString>,
    /// A name and an entry in turn.
    pairs: Vec<*mut raw::RedisModuleString>,
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
    /// An empty collection, for queues in this database and, in a cluster, in this slot.
    pub(super) fn new(db: i32, slot: Option<c_int>) -> LogEntries {
        LogEntries {
            db,
            slot,
            names: Vec::new(),
            pairs: Vec::new(),
        }
    }

    /// Whether the collected entries belong to this database.
    pub(super) fn is_of_db(&self, db: i32) -> bool {
        self.db == db
    }

    /// Whether the collected entries belong to this slot.
    pub(super) fn is_of_slot(&self, slot: Option<c_int>) -> bool {
        self.slot == slot
    }

    pub(super) fn add(&mut self, name: Name<'_>, entry: &[u8]) {
        // SAFETY: the module owns the string.
        let is_last =
            |last: &*mut raw::RedisModuleString| unsafe { string_bytes(*last) } == name.bytes();
        let last = match self.names.last().copied().filter(is_last) {
            Some(last) => last,
            None => {
                let name = string(name.bytes());
                self.names.push(name);
                name
            }
        };
        self.pairs.extend([last, string(entry)]);
    }

    /// Replicates the entries: as `DQ.OP name entry [entry ...]` those of one queue, as `DQ.OPS
    /// name entry [name entry ...]` those of several. Does nothing if there are none.
    ///
    /// # Safety
    /// `ctx` must be the live context of the call, with the database of the queues selected.
    pub(super) unsafe fn send(mut self, ctx: *mut raw::RedisModuleCtx) {
        let mut of_one = match self.names.as_slice() {
            [] => return,
            [name] => vec![*name],
            _ => Vec::new(),
        };
        let (command, words) = match of_one.is_empty() {
            true => (c"DQ.OPS", &mut self.pairs),
            false => {
                of_one.extend(self.entries());
                (c"DQ.OP", &mut of_one)
            }
        };
        // SAFETY: the caller guarantees that the context is live. The format gives the types of the
        // arguments, and the server retains the strings as long as it needs them.
        unsafe {
            api!(RedisModule_Replicate(
                ctx,
                command.as_ptr(),
                c"v".as_ptr(),
                words.as_mut_ptr(),
                words.len()
            ));
        }
    }

    fn entries(&self) -> impl Iterator<Item = *mut raw::RedisModuleString> + '_ {
        self.pairs.iter().skip(1).step_by(2).copied()
    }
}

impl Drop for LogEntries {
    fn drop(&mut self) {
        for string in self.names.iter().copied().chain(self.entries()) {
            // SAFETY: made by us without a context, freed once.
            unsafe { api!(RedisModule_FreeString(ptr::null_mut(), string)) }
        }
    }
}
