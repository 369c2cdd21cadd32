//! DQ.CANCEL, DQ.RESCHEDULE, DQ.UPDATE, DQ.REDRIVE and DQ.PURGE.

use super::execute::{self, Missing};
use super::outcome;
use super::parse::{self, Words};
use super::postpone;
use crate::config::MAX_PAYLOAD;
use crate::core::Done;
use crate::ffi::{Args, CommandResult, Context};

/// `DQ.CANCEL`: the state that each message was in, or null.
pub fn cancel(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let words = Words::after_key(args);
    let named = words.left();
    let op = parse::change::cancel(words)?;
    let key = parse::key(args)?;
    execute::run(ctx, key, &op, Missing::Nothing, |reply, outcome| {
        reply.array(named);
        match outcome {
            Some((_, Done::States(states))) => {
                for state in states {
                    match state {
                        Some(state) => reply.bulk(state.name().as_bytes()),
                        None => reply.null(),
                    }
                }
            }
            _ => (0..named).for_each(|_| reply.null()),
        }
    })
}

/// `DQ.RESCHEDULE`: 1, or 0 where no such message waits.
pub fn reschedule(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let op = parse::change::reschedule(Words::after_key(args))?;
    execute::run(ctx, parse::key(args)?, &op, Missing::Nothing, outcome::flag)
}

/// `DQ.UPDATE`: 1, or 0 where no such message waits.
pub fn update(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let op = parse::change::update(Words::after_key(args), MAX_PAYLOAD.unsigned())?;
    execute::run(ctx, parse::key(args)?, &op, Missing::Nothing, outcome::flag)
}

/// `DQ.REDRIVE`: how many are pending again.
pub fn redrive(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let op = parse::change::redrive(Words::after_key(args))?;
    postpone::run(ctx, parse::key(args)?, op)
}

/// `DQ.PURGE`: how many were removed.
pub fn purge(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let op = parse::change::purge(Words::after_key(args))?;
    postpone::run(ctx, parse::key(args)?, op)
}
