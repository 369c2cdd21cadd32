//! DQ.UPDATE: changes the payload of a message. Replies with 1, or with 0 if the message is not
//! pending.

use crate::redis::spec::{Access, Arg, CommandSpec, Keys};
use crate::redis::{Args, CommandResult, Context};
use crate::server::commit::{self, Missing};
use crate::server::config::MAX_PAYLOAD;
use crate::server::replies;
use dq_queue::args::{self, Words};

pub(super) const SPEC: CommandSpec = CommandSpec {
    name: "DQ.UPDATE",
    handler: run,
    flags: "write deny-oom fast",
    keys: Keys::First,
    access: Access::Update,
    summary: "Changes the payload of a message.",
    complexity: "O(1)",
    args: &[Arg::key(), Arg::text("id"), Arg::text("payload")],
};

fn run(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let words = args.after_key();
    let op = args::update::update(Words::new(&words), MAX_PAYLOAD.unsigned())?;
    commit::run(ctx, args.key()?, &op, Missing::Nothing, replies::flag)
}
