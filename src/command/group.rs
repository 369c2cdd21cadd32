//! DQ.PAUSE, DQ.RESUME and DQ.GROUPSET.

use super::execute::{self, Missing};
use super::outcome;
use crate::ffi::{Args, CommandResult, Context};
use dq_queue::args::{self, Words};

/// `DQ.PAUSE`
pub fn pause(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let words = args.after_key();
    let op = args::group::pause(Words::new(&words))?;
    execute::run(ctx, args.key()?, &op, Missing::Create, outcome::ok)
}

/// `DQ.RESUME`
pub fn resume(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let words = args.after_key();
    let op = args::group::resume(Words::new(&words))?;
    execute::run(ctx, args.key()?, &op, Missing::Nothing, outcome::ok)
}

/// `DQ.GROUPSET`
pub fn group_set(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let words = args.after_key();
    let op = args::group::group_set(Words::new(&words))?;
    execute::run(ctx, args.key()?, &op, Missing::Create, outcome::ok)
}
