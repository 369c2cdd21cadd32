//! Operations that are done at once where that takes a moment, and else in
//! slices, while the client waits.

use std::rc::Rc;

use super::execute::{self, Missing};
use super::outcome;
use crate::ffi::blocking::{self, Wait};
use crate::ffi::{CommandResult, Context, Failure, Name, Reply};
use crate::runtime::{moment, postponed, wake};
use dq_queue::op::Redrive;
use dq_queue::queue::approach::Approach;
use dq_queue::Op;

/// Runs an operation that counts what it does. Inside MULTI and scripts it is
/// done at once in any case.
pub fn run(ctx: &mut Context, key: Name<'_>, op: Op<'_>) -> CommandResult {
    if !ctx.deny_blocking() && !is_short(ctx, key, &op)? {
        // As far as a command lets time act, it may be short then.
        execute::run(ctx, key, &Op::Tick, Missing::Nothing, |_, _| ())?;
        if !is_short(ctx, key, &op)? {
            return postpone(ctx, key, op);
        }
    }
    execute::run(ctx, key, &op, Missing::Nothing, outcome::count)
}

/// Whether the queue can do this in a moment, as it is now.
fn is_short(ctx: &mut Context, key: Name<'_>, op: &Op<'_>) -> Result<bool, Failure> {
    let moment = moment::now();
    let mut opened = ctx.open_write(key)?;
    let (_, queue) = opened.split();
    Ok(queue.is_none_or(|queue| {
        let now = queue.now(moment);
        queue.approach(op, now) == Approach::AtOnce
    }))
}

fn postpone(ctx: &mut Context, key: Name<'_>, op: Op<'_>) -> CommandResult {
    let op = match op {
        Op::Purge { state, group } => Op::Purge {
            state,
            group: group.map(|name| name.into_owned().into()),
        },
        Op::Redrive(Redrive::Oldest(most)) => Op::Redrive(Redrive::Oldest(most)),
        short => return execute::run(ctx, key, &short, Missing::Nothing, outcome::count),
    };
    match blocking::block(ctx, &[key], 0, Rc::new(Waiter)) {
        Some(client) => {
            postponed::add(ctx.db(), key.bytes(), op, client);
            wake::note(ctx, ctx.db(), key.bytes(), moment::now().ms());
            Ok(())
        }
        None => execute::run(ctx, key, &op, Missing::Nothing, outcome::count),
    }
}

/// A client that waits until its operation is done: `postponed.rs` answers it.
struct Waiter;

impl Wait for Waiter {
    fn appeared(&self, _: &Context, _: Name<'_>) {}

    fn timed_out(&self, reply: Reply<'_>) {
        reply.error("ERR unblocked before all was done; what was done so far stays so");
    }

    fn gone(&self) {}
}
