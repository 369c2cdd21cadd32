//! Bulk operations: PURGE and REDRIVE. A short one runs at once. A long one runs in slices while
//! its client is blocked.
//!
//! `pending.rs` has the operations that run in slices, and `slice_size.rs` computes the size of a
//! slice. The timer runs the slices.

mod pending;
mod slice_size;

pub use pending::{answer_flushed, answer_gone, any, next_step, step_taken, Taken};

use std::rc::Rc;

use crate::redis::blocking::{self, Wait};
use crate::redis::{CommandResult, Context, Failure, Name, Reply};
use dq_queue::queue::plan::Plan;
use dq_queue::Op;

use super::commit::{self, Missing};
use super::{clock, replies, wakeups};

/// Runs a bulk operation, and replies with the number of messages that it removed or revived.
/// Inside MULTI and scripts it always runs at once. Error: the key holds another type.
pub fn run(ctx: &mut Context, key: Name<'_>, op: Op<'_>) -> CommandResult {
    if !ctx.deny_blocking() && plan(ctx, key, &op)?.is_some() {
        // It may only be long because due events must be processed first.
        commit::run(ctx, key, &Op::Tick, Missing::Nothing, |_, _| ())?;
        if let Some(plan) = plan(ctx, key, &op)? {
            if block(ctx, key, plan) {
                return Ok(());
            }
        }
    }
    commit::run(ctx, key, &op, Missing::Nothing, replies::count)
}

/// How to run the operation in slices; `None` if the queue can run it at once.
fn plan(ctx: &mut Context, key: Name<'_>, op: &Op<'_>) -> Result<Option<Plan>, Failure> {
    let moment = clock::now();
    let opened = ctx.open_read(key)?;
    let queue = opened.get();
    Ok(queue.and_then(|queue| queue.plan(op, queue.time(moment))))
}

/// Blocks the client until the timer has done the operation in slices. Returns false where the
/// client cannot be blocked.
fn block(ctx: &mut Context, key: Name<'_>, plan: Plan) -> bool {
    let Some(client) = blocking::block(ctx, &[key], 0, Rc::new(BlockedClient)) else {
        return false;
    };
    pending::add(ctx.db(), key.bytes(), plan, client);
    wakeups::schedule(ctx, ctx.db(), key.bytes(), clock::now().ms());
    true
}

/// A client that waits for its bulk operation. `pending.rs` answers it.
struct BlockedClient;

impl Wait for BlockedClient {
    fn timed_out(&self, reply: Reply<'_>) {
        reply.error("ERR unblocked before completion; messages removed so far are not restored");
    }
}
