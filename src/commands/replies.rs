//! Replies that several commands share.
//!
//! Each takes what [`commit::run`](crate::server::commit::run) hands over: `None` where there is no
//! queue, which counts as an empty one.

use crate::redis::Reply;
use dq_queue::{Done, Queue};

/// `OK`.
pub fn ok(reply: Reply<'_>, _: Option<(&Queue, &Done)>) {
    reply.status(c"OK");
}

/// The number of messages that it was done to.
pub fn count(reply: Reply<'_>, outcome: Option<(&Queue, &Done)>) {
    match outcome {
        Some((_, Done::Count(count))) => reply.unsigned(*count),
        _ => reply.integer(0),
    }
}

/// 1 where there was something to do, 0 otherwise.
pub fn flag(reply: Reply<'_>, outcome: Option<(&Queue, &Done)>) {
    match outcome {
        Some((_, Done::Flag(done))) => reply.integer(i64::from(*done)),
        _ => reply.integer(0),
    }
}
