//! DQ.RESUME: ends a pause of a queue or a group, and unblocks a group that a dead message blocks.

use super::options::GROUP;
use crate::redis::spec::{Access, Arg, CommandSpec, Keys};
use crate::redis::{Args, CommandResult, Context};
use crate::server::commit::{self, Missing};
use crate::server::replies;
use dq_queue::args::{self, Words};

pub(super) const SPEC: CommandSpec = CommandSpec {
    name: "DQ.RESUME",
    handler: run,
    flags: "write fast",
    keys: Keys::First,
    access: Access::Update,
    summary: "Ends a pause, and what holds a group since a message of it died.",
    complexity: "O(log N) with N messages in the queue",
    args: &[Arg::key(), GROUP],
};

fn run(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let words = args.after_key();
    let op = args::resume::resume(Words::new(&words))?;
    commit::run(ctx, args.key()?, &op, Missing::Nothing, replies::ok)
}
