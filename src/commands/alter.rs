//! DQ.ALTER: changes options of a queue.

use super::create::{self, check_keys, other_keys};
use crate::redis::spec::{Access, Arg, CommandSpec, Keys};
use crate::redis::{Args, CommandResult, Context};
use crate::server::commit::{self, Missing};
use crate::server::replies;
use dq_queue::args::{self, Words};
use dq_queue::Op;

pub(super) const SPEC: CommandSpec = CommandSpec {
    name: "DQ.ALTER",
    handler: run,
    flags: "write fast getkeys-api",
    keys: Keys::FirstAnd(other_keys),
    access: Access::Update,
    summary: "Changes options of a queue, for the messages in it too.",
    complexity:
        "O(1); O(N log N) with N messages for another TTL; O(G log N) with G groups for another \
                 ONDEAD, ONRETRY, GROUPCONCURRENCY, BREAKER or FAIR",
    args: &[Arg::key(), ONE_SETTING.multiple()],
};

const ONE_SETTING: Arg = Arg::block(
    "setting",
    &[
        Arg::text("option").one_of_these(create::SPEC.args),
        Arg::text("value"),
    ],
);

fn run(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let words = args.after_key();
    let changes = args::alter::alter(Words::new(&words))?;
    let key = args.key()?;
    check_keys(ctx, key, &changes)?;
    let op = Op::Alter(changes);
    commit::run(ctx, key, &op, Missing::Refuse, replies::ok)
}
