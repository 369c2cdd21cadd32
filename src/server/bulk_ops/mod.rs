//! Bulk operations: PURGE and REDRIVE. A short one runs at once. A long one runs in slices while
//! its client is blocked.
//!
//! `pending.rs` has the operations that run in slices, and `slice_size.rs` computes the size of a
//! slice. The timer runs the slices.

mod pending;
mod slice_size;

pub use pending::{answer_flushed, answer_gone, any, next_slice, slice_done, Slice};

use std::rc::Rc;

use crate::redis::blocking::{self, Wait};
use crate::redis::{CommandResult, Context, Failure, Name, Reply};
use dq_queue::op::Redrive;
use dq_queue::queue::approach::Approach;
use dq_queue::{Done, Op, Queue};

use super::commit::{self, Missing};
use super::{clock, wakeups};

/// Runs a bulk operation, and replies with the number of messages that it removed or revived.
/// Inside MULTI and scripts it always runs at once. Error: the key holds another type.
pub fn run(ctx: &mut Context, key: Name<'_>, op: Op<'_>) -> CommandResult {
    if !ctx.deny_blocking() && !is_short(ctx, key, &op)? {
        // It may only be long because due events must be processed first.
        commit::run(ctx, key, &Op::Tick, Missing::Nothing, |_, _| ())?;
        if !is_short(ctx, key, &op)? {
            return block(ctx, key, op);
        }
    }
    commit::run(ctx, key, &op, Missing::Nothing, write_count)
}

/// Whether the queue can run the operation at once.
fn is_short(ctx: &mut Context, key: Name<'_>, op: &Op<'_>) -> Result<bool, Failure> {
    let moment = clock::now();
    let mut opened = ctx.open_write(key)?;
    let (_, queue) = opened.split();
    Ok(queue.is_none_or(|queue| {
        let now = queue.now(moment);
        queue.approach(op, now) == Approach::AtOnce
    }))
}

/// Blocks the client until the timer has done the operation in slices.
fn block(ctx: &mut Context, key: Name<'_>, op: Op<'_>) -> CommandResult {
    let op = match op {
        Op::Purge { state, group } => Op::Purge {
            state,
            group: group.map(|name| name.into_owned().into()),
        },
        Op::Redrive(Redrive::Oldest(most)) => Op::Redrive(Redrive::Oldest(most)),
        short => return commit::run(ctx, key, &short, Missing::Nothing, write_count),
    };
    match blocking::block(ctx, &[key], 0, Rc::new(BlockedClient)) {
        Some(client) => {
            pending::add(ctx.db(), key.bytes(), op, client);
            wakeups::schedule(ctx, ctx.db(), key.bytes(), clock::now().ms());
            Ok(())
        }
        None => commit::run(ctx, key, &op, Missing::Nothing, write_count),
    }
}

fn write_count(reply: Reply<'_>, outcome: Option<(&Queue, &Done)>) {
    match outcome {
        Some((_, Done::Count(count))) => reply.unsigned(*count),
        _ => reply.integer(0),
    }
}

/// A client that waits for its bulk operation. `pending.rs` answers it.
struct BlockedClient;

impl Wait for BlockedClient {
    fn timed_out(&self, reply: Reply<'_>) {
        reply.error("ERR unblocked before completion; messages removed so far are not restored");
    }
}
