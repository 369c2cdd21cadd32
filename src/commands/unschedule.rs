//! DQ.UNSCHEDULE: removes a schedule. Replies with 1, or with 0 if there is none with that name.

use crate::redis::spec::{Access, Arg, CommandSpec, Keys};
use crate::redis::{Args, CommandResult, Context};
use crate::server::commit::{self, Missing};
use crate::server::replies;
use dq_queue::args::{self, Words};

pub(super) const SPEC: CommandSpec = CommandSpec {
    name: "DQ.UNSCHEDULE",
    handler: run,
    flags: "write fast",
    keys: Keys::First,
    access: Access::Delete,
    summary: "Removes a schedule.",
    complexity: "O(log S) with S schedules",
    args: &[Arg::key(), Arg::text("name")],
};

fn run(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let words = args.after_key();
    let op = args::schedule::unschedule(Words::new(&words))?;
    commit::run(ctx, args.key()?, &op, Missing::Nothing, replies::flag)
}
