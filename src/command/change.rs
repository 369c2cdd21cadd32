//! DQ.CANCEL, DQ.RESCHEDULE, DQ.UPDATE, DQ.REDRIVE and DQ.PURGE.

use super::execute::{self, Missing};
use super::outcome;
use super::postpone;
use crate::config::MAX_PAYLOAD;
use crate::ffi::{Args, CommandResult, Context};
use dq_queue::args::{self, Words};
use dq_queue::Done;

/// `DQ.CANCEL`: the state that each message was in, or null.
pub fn cancel(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let words = args.after_key();
    let words = Words::new(&words);
    let named = words.left();
    let op = args::change::cancel(words)?;
    let key = args.key()?;
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
    let words = args.after_key();
    let op = args::change::reschedule(Words::new(&words))?;
    execute::run(ctx, args.key()?, &op, Missing::Nothing, outcome::flag)
}

/// `DQ.UPDATE`: 1, or 0 where no such message waits.
pub fn update(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let words = args.after_key();
    let op = args::change::update(Words::new(&words), MAX_PAYLOAD.unsigned())?;
    execute::run(ctx, args.key()?, &op, Missing::Nothing, outcome::flag)
}

/// `DQ.REDRIVE`: how many are pending again.
pub fn redrive(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let words = args.after_key();
    let op = args::change::redrive(Words::new(&words))?;
    postpone::run(ctx, args.key()?, op)
}

/// `DQ.PURGE`: how many were removed.
pub fn purge(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let words = args.after_key();
    let op = args::change::purge(Words::new(&words))?;
    postpone::run(ctx, args.key()?, op)
}
