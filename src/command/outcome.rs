//! Replies that several verbs share.
//!
//! Each takes what [`execute::run`](super::execute::run) hands over: `None`
//! where there is no queue, which is as an empty one.

use crate::ffi::Reply;
use dq_queue::{Done, Queue};

/// `OK`.
pub fn ok(reply: Reply<'_>, _: Option<(&Queue, &Done)>) {
    reply.status(c"OK");
}

/// How many it was done to.
pub fn count(reply: Reply<'_>, outcome: Option<(&Queue, &Done)>) {
    match outcome {
        Some((_, Done::Count(count))) => reply.unsigned(*count),
        _ => reply.integer(0),
    }
}

/// 1 where there was something to do, else 0.
pub fn flag(reply: Reply<'_>, outcome: Option<(&Queue, &Done)>) {
    match outcome {
        Some((_, Done::Flag(done))) => reply.integer(i64::from(*done)),
        _ => reply.integer(0),
    }
}
