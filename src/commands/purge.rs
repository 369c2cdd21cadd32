//! DQ.PURGE: removes messages. Replies with their number.

use super::options::{GROUP, STATE};
use crate::redis::spec::{Access, Arg, CommandSpec, Keys};
use crate::redis::{Args, CommandResult, Context};
use crate::server::bulk_ops;
use dq_queue::args::{self, Words};

pub(super) const SPEC: CommandSpec = CommandSpec {
    name: "DQ.PURGE",
    handler: run,
    flags: "write",
    keys: Keys::First,
    access: Access::Delete,
    summary: "Removes messages, of one state or group or all.",
    complexity: "O(M log N) with M messages removed of N, in slices where M is large, and with H \
                 messages held if some of the group are; O(1) for a whole queue",
    args: &[
        Arg::key(),
        // Both forms are one choice, so that only one of them can be given.
        Arg::one_of("which", &[STATE, Arg::text("state").after("STATE")]).optional(),
        GROUP,
    ],
};

fn run(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let words = args.after_key();
    let op = args::purge::purge(Words::new(&words))?;
    bulk_ops::run(ctx, args.key()?, op)
}
