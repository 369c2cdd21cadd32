//! DQ.ALTER.

use super::execute::{self, Missing};
use super::outcome;
use super::parse::{self, Words};
use crate::core::Op;
use crate::ffi::{Args, CommandResult, Context};

/// `DQ.ALTER`
pub fn alter(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let op = Op::Alter(parse::settings::alter(Words::after_key(args))?);
    execute::run(ctx, parse::key(args)?, &op, Missing::Refuse, outcome::ok)
}
