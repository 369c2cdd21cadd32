//! How a change reaches replicas and the append-only file.

use std::cell::RefCell;

use crate::redis::{Context, Name, Value};
use dq_queue::codec::log_entry::LogEntry;
use dq_queue::Op;

/// The way in which a change reaches replicas and the append-only file.
pub enum Replication<'r, 'o, 'a> {
    /// The change is replicated as this log entry.
    Entry(&'r LogEntry<'o, 'a>),
    /// The running command is replicated verbatim.
    Verbatim,
    /// Not by this change: the command that is being replayed has been replicated already.
    Replayed,
    /// Like `Replayed`, and the change has put a whole queue into the key.
    Restored,
}

/// Replicates that ties of the queue were cut when it came ([`ties`](crate::server::ties)), in the
/// same command as what follows.
#[cold]
pub(super) fn replicate_cut(ctx: &Context, key: Name<'_>, queue: &mut Value) {
    let Some((ties, moment)) = queue.notes.cut.take() else {
        return;
    };
    // A server that was a primary meanwhile repeats what its new primary does.
    if !ctx.is_replay() && ctx.needs_log_entries() {
        ctx.collect_log_entries();
        let op = Op::Detach(ties);
        replicate(ctx, key, &LogEntry::of(moment, 0, None, &op));
    }
}

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The capacity in bytes above which the buffer is freed after use.
const KEPT_BUFFER: usize = 64 * 1024;

/// Replicates a change as a log entry.
pub(super) fn replicate(ctx: &Context, key: Name<'_>, entry: &LogEntry<'_, '_>) {
    BUFFER.with_borrow_mut(|buffer| {
        buffer.clear();
        entry.encode_into(buffer);
        ctx.replicate(key, buffer);
        if buffer.capacity() > KEPT_BUFFER {
            *buffer = Vec::new();
        }
    });
}
