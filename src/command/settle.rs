//! DQ.ACK, DQ.NACK and DQ.TOUCH: each answers how many receipts were current.

use super::apply;
use super::execute::{self, Form, Missing};
use super::outcome;
use crate::ffi::{Args, CommandResult, Context};
use dq_queue::args::{self, Words};

/// `DQ.ACK`
pub fn ack(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let words = args.after_key();
    let op = args::settle::ack(Words::new(&words))?;
    let key = args.key()?;
    if ctx.is_replay() {
        return apply::repeat_command(ctx, key, &op);
    }
    execute::run_in_form(
        ctx,
        key,
        &op,
        Missing::Nothing,
        Form::Command,
        outcome::count,
    )
}

/// `DQ.NACK`
pub fn nack(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let words = args.after_key();
    let op = args::settle::nack(Words::new(&words), execute::random())?;
    execute::run(ctx, args.key()?, &op, Missing::Nothing, outcome::count)
}

/// `DQ.TOUCH`
pub fn touch(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let words = args.after_key();
    let op = args::settle::touch(Words::new(&words))?;
    execute::run(ctx, args.key()?, &op, Missing::Nothing, outcome::count)
}
