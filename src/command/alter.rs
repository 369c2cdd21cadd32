//! DQ.ALTER.

use super::execute::{self, Missing};
use super::outcome;
use crate::ffi::{Args, CommandResult, Context};
use dq_queue::args::{self, Words};
use dq_queue::Op;

/// `DQ.ALTER`
pub fn alter(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let words = args.after_key();
    let op = Op::Alter(args::settings::alter(Words::new(&words))?);
    execute::run(ctx, args.key()?, &op, Missing::Refuse, outcome::ok)
}
