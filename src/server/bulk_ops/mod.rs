//! Bulk operations: PURGE and REDRIVE. A short one runs at once. A long one runs in slices while
//! its client is blocked.
//!
//! `pending.rs` has the operations that run in slices, and `slice_size.rs` computes the size of a
//! slice. The timer runs the slices.

mod pending;
mod slice_size;

pub use pending::{any, any_at_all, end, end_all, next_step, step_taken, Taken};

use std::cell::Cell;
use std::rc::Rc;

use crate::redis::blocking;
use crate::redis::wait::Wait;
use crate::redis::{CommandResult, Context, Failure, Name, Reply};
use dq_queue::queue::bulk::Plan;
use dq_queue::Op;

use super::commit::{self, Missing};
use super::{clock, moving_slots, replies, wakeups};

/// Runs a bulk operation, and replies with the number of messages that it removed or revived.
/// Inside MULTI and scripts it always runs at once. Errors: the key holds another type, or the
/// operation would write to a key that is not here.
pub fn run(ctx: &mut Context, key: Name<'_>, op: Op<'_>) -> CommandResult {
    moving_slots::check(ctx, key, Some(&op))?;
    if !ctx.deny_blocking() && plan(ctx, key, &op)?.is_some() {
        // The operation may only be long because due events must be processed first.
        commit::run(ctx, key, &Op::Tick, Missing::Nothing, |_, _| ())?;
        if let Some(plan) = plan(ctx, key, &op)? {
            if block(ctx, key, plan) {
                return Ok(());
            }
        }
    }
    commit::run(ctx, key, &op, Missing::Nothing, replies::count)
}

/// The plan to run the operation in slices; `None` if the queue can run it at once.
fn plan(ctx: &mut Context, key: Name<'_>, op: &Op<'_>) -> Result<Option<Plan>, Failure> {
    let moment = clock::now();
    let opened = ctx.open_read(key)?;
    let queue = opened.get();
    Ok(queue.and_then(|queue| queue.plan(op, queue.time(moment))))
}

/// Blocks the client until the timer has done the operation in slices. Returns false where the
/// client cannot be blocked.
fn block(ctx: &mut Context, key: Name<'_>, plan: Plan) -> bool {
    let counted = Rc::new(Cell::new(0));
    let waiting = Rc::new(BlockedClient(Rc::clone(&counted)));
    let Some(client) = blocking::block(ctx, &[key], 0, waiting) else {
        return false;
    };
    pending::add(ctx.db(), key.bytes(), plan, (client, counted));
    wakeups::schedule(ctx, ctx.db(), key.bytes(), clock::now().ms());
    true
}

/// A client that waits for its bulk operation, with the number of messages that it has removed or
/// revived so far. `pending.rs` answers it.
struct BlockedClient(Rc<Cell<u64>>);

impl Wait for BlockedClient {
    fn timed_out(&self, reply: Reply<'_>) {
        write_partial(reply, self.0.get(), "CLIENT UNBLOCK has ended it");
    }
}

/// Ends all operations if a FAILOVER has begun: no slice runs before it is over, and then the
/// server would send their clients away without a report of the work so far.
pub fn before_sleep(ctx: &Context) {
    if any_at_all() && !ctx.may_act() && ctx.is_failing_over() {
        end_all(None, "a failover has begun");
    }
}

/// Writes the error for an operation that has ended before its time.
fn write_partial(reply: Reply<'_>, counted: u64, why: &str) {
    reply.error(&format!(
        "PARTIAL {counted} messages are done and stay so, but {why}"
    ));
}
