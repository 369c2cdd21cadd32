//! DQ.SCHEDULE and DQ.UNSCHEDULE.

use super::execute::{self, Missing};
use super::outcome;
use super::parse::{self, Parsed, Words};
use crate::config::MAX_PAYLOAD;
use crate::core::op::Op;
use crate::core::{Done, Millis};
use crate::ffi::{Args, CommandResult, Context, Name};
use crate::runtime::moment;

/// `DQ.SCHEDULE`: when it fires next.
pub fn schedule(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let key = parse::key(args)?;
    let request = parse::schedule::schedule(Words::after_key(args), MAX_PAYLOAD.unsigned())?;
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
    let op = parse::schedule::unschedule(Words::after_key(args))?;
    execute::run(ctx, parse::key(args)?, &op, Missing::Nothing, outcome::flag)
}

/// The time of a queue, which is part of what an EVERY without START means:
/// a MANUAL queue has a clock of its own.
fn queue_time(ctx: &mut Context, key: Name<'_>) -> Parsed<Millis> {
    let moment = moment::now();
    let key = ctx.open_read(key)?;
    Ok(key.get().map_or(moment.ms(), |queue| queue.now(moment)))
}
