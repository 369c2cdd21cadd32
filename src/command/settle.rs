//! DQ.ACK, DQ.NACK and DQ.TOUCH: each answers how many receipts were current.

use super::apply;
use super::execute::{self, Form, Missing};
use super::outcome;
use super::parse::{self, Words};
use crate::ffi::{Args, CommandResult, Context};

/// `DQ.ACK`
pub fn ack(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let op = parse::settle::ack(Words::after_key(args))?;
    let key = parse::key(args)?;
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
    let op = parse::settle::nack(Words::after_key(args), execute::random())?;
    execute::run(
        ctx,
        parse::key(args)?,
        &op,
        Missing::Nothing,
        outcome::count,
    )
}

/// `DQ.TOUCH`
pub fn touch(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let op = parse::settle::touch(Words::after_key(args))?;
    execute::run(
        ctx,
        parse::key(args)?,
        &op,
        Missing::Nothing,
        outcome::count,
    )
}
