//! DQ.LIMIT: gives a limit with a name its rule.

use super::options::RATE;
use crate::redis::spec::{Access, Arg, CommandSpec, Keys};
use crate::redis::{Args, CommandResult, Context};
use crate::server::commit::{self, Missing};
use crate::server::replies;
use dq_queue::args::{self, Words};

pub(super) const SPEC: CommandSpec = CommandSpec {
    name: "DQ.LIMIT",
    handler: run,
    flags: "write deny-oom fast",
    keys: Keys::First,
    access: Access::Update,
    summary: "Limits the messages that name it in LIMITS, or takes the limit away.",
    complexity: "O(log N) with N messages in the queue; O(L log N) with L names for a pattern",
    args: &[
        Arg::key(),
        Arg::text("name"),
        Arg::integer("concurrency").after("CONCURRENCY").optional(),
        RATE.multiple(),
        Arg::word("weight", "WEIGHT").optional(),
    ],
};

fn run(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let words = args.after_key();
    let op = args::limit::limit(Words::new(&words))?;
    commit::run(ctx, args.key()?, &op, Missing::Create, replies::ok)
}
