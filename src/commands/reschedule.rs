//! DQ.RESCHEDULE: changes when a message is due. Replies with 1, or with 0 if the message is not
//! pending.

use super::options::DUE;
use crate::redis::spec::{Access, Arg, CommandSpec, Keys};
use crate::redis::{Args, CommandResult, Context};
use crate::server::commit::{self, Missing};
use crate::server::replies;
use dq_queue::args::{self, Words};

pub(super) const SPEC: CommandSpec = CommandSpec {
    name: "DQ.RESCHEDULE",
    handler: run,
    flags: "write fast",
    keys: Keys::First,
    access: Access::Update,
    summary: "Changes when a message is due.",
    complexity: "O(log N) with N messages in the queue",
    args: &[Arg::key(), Arg::text("id"), DUE],
};

fn run(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let words = args.after_key();
    let op = args::reschedule::reschedule(Words::new(&words))?;
    commit::run(ctx, args.key()?, &op, Missing::Nothing, replies::flag)
}
