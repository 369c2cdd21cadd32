//! DQ.GROUPSET: sets the options of a group.

use super::options::RATE;
use crate::redis::spec::{Access, Arg, CommandSpec, Keys};
use crate::redis::{Args, CommandResult, Context};
use crate::server::commit::{self, Missing};
use crate::server::replies;
use dq_queue::args::{self, Words};

pub(super) const SPEC: CommandSpec = CommandSpec {
    name: "DQ.GROUPSET",
    handler: run,
    flags: "write deny-oom fast",
    keys: Keys::First,
    access: Access::Update,
    summary: "Gives a group settings of its own.",
    complexity: "O(log N) with N messages in the queue",
    args: &[
        Arg::key(),
        Arg::text("group"),
        Arg::integer("weight").after("WEIGHT").optional(),
        Arg::integer("concurrency").after("CONCURRENCY").optional(),
        RATE,
    ],
};

fn run(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let words = args.after_key();
    let op = args::groupset::group_set(Words::new(&words))?;
    commit::run(ctx, args.key()?, &op, Missing::Create, replies::ok)
}
