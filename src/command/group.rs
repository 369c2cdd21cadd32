//! DQ.PAUSE, DQ.RESUME and DQ.GROUPSET.

use super::execute::{self, Missing};
use super::outcome;
use super::parse::{self, Words};
use crate::ffi::{Args, CommandResult, Context};

/// `DQ.PAUSE`
pub fn pause(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let op = parse::group::pause(Words::after_key(args))?;
    execute::run(ctx, parse::key(args)?, &op, Missing::Create, outcome::ok)
}

/// `DQ.RESUME`
pub fn resume(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let op = parse::group::resume(Words::after_key(args))?;
    execute::run(ctx, parse::key(args)?, &op, Missing::Nothing, outcome::ok)
}

/// `DQ.GROUPSET`
pub fn group_set(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let op = parse::group::group_set(Words::after_key(args))?;
    execute::run(ctx, parse::key(args)?, &op, Missing::Create, outcome::ok)
}
