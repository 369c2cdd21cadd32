//! DQ.PAUSE: stops deliveries of a queue or a group.

use super::options::GROUP;
use crate::redis::spec::{Access, Arg, CommandSpec, Keys};
use crate::redis::{Args, CommandResult, Context};
use crate::server::commit::{self, Missing};
use crate::server::replies;
use dq_queue::args::{self, Words};

pub(super) const SPEC: CommandSpec = CommandSpec {
    name: "DQ.PAUSE",
    handler: run,
    flags: "write deny-oom fast",
    keys: Keys::First,
    access: Access::Update,
    summary: "Stops deliveries of a queue or of one group of it.",
    complexity: "O(log N) with N messages in the queue",
    args: &[
        Arg::key(),
        GROUP,
        Arg::integer("for").after("FOR").optional(),
    ],
};

fn run(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let words = args.after_key();
    let op = args::pause::pause(Words::new(&words))?;
    commit::run(ctx, args.key()?, &op, Missing::Create, replies::ok)
}
