//! DQ.SCHEDULE and DQ.UNSCHEDULE.

use super::execute::{self, Missing};
use super::outcome;
use crate::config::MAX_PAYLOAD;
use crate::ffi::{Args, CommandResult, Context, Failure, Name};
use crate::runtime::moment;
use dq_queue::args::{self, Words};
use dq_queue::op::Op;
use dq_queue::{Done, Millis};

/// `DQ.SCHEDULE`: when it fires next.
pub fn schedule(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let key = args.key()?;
    let words = args.after_key();
    let request = args::schedule::schedule(Words::new(&words), MAX_PAYLOAD.unsigned())?;
    let op = Op::Schedule(request.at(queue_time(ctx, key)?)?);
    execute::run(
        ctx,
        key,
        &op,
        Missing::Create,
        |reply, outcome| match outcome {
            Some((_, Done::NextFire(at))) => reply.unsigned(*at),
            _ => reply.null(),
        },
    )
}

/// `DQ.UNSCHEDULE`: 1, or 0 where there is none of that name.
pub fn unschedule(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let words = args.after_key();
    let op = args::schedule::unschedule(Words::new(&words))?;
    execute::run(ctx, args.key()?, &op, Missing::Nothing, outcome::flag)
}

/// The time of a queue, which is part of what an EVERY without START means:
/// a MANUAL queue has a clock of its own.
fn queue_time(ctx: &mut Context, key: Name<'_>) -> Result<Millis, Failure> {
    let moment = moment::now();
    let key = ctx.open_read(key)?;
    Ok(key.get().map_or(moment.ms(), |queue| queue.now(moment)))
}
