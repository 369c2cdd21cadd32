//! Replies that several commands share.
//!
//! They take the arguments of the `reply` of [`commit::run`](super::commit::run). The
//! outcome is `None` if there is no queue; then they reply as for an empty queue.

use crate::redis::Reply;
use dq_queue::{Done, Queue};

/// Replies with `OK`.
pub fn ok(reply: Reply<'_>, _: Option<(&Queue, &Done)>) {
    reply.status(c"OK");
}

/// Replies with the number of messages that the operation has changed.
pub fn count(reply: Reply<'_>, outcome: Option<(&Queue, &Done)>) {
    match outcome {
        Some((_, Done::Count(count))) => reply.unsigned(*count),
        _ => reply.integer(0),
    }
}

/// Replies with 1 if the operation has changed something, otherwise with 0.
pub fn flag(reply: Reply<'_>, outcome: Option<(&Queue, &Done)>) {
    match outcome {
        Some((_, Done::Flag(done))) => reply.integer(i64::from(*done)),
        _ => reply.integer(0),
    }
}
