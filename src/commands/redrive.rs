//! DQ.REDRIVE: makes dead messages pending again. Replies with their number.

use super::options::COUNT;
use crate::redis::spec::{Access, Arg, CommandSpec, Keys};
use crate::redis::{Args, CommandResult, Context};
use crate::server::bulk_ops;
use dq_queue::args::{self, Words};

pub(super) const SPEC: CommandSpec = CommandSpec {
    name: "DQ.REDRIVE",
    handler: run,
    flags: "write",
    keys: Keys::First,
    access: Access::Update,
    summary: "Makes dead messages pending again.",
    complexity: "O(M log N) with M messages revived and N in the queue, in slices where M is large",
    args: &[
        Arg::key(),
        Arg::one_of(
            "which",
            &[
                Arg::block("all", &[Arg::word("all", "ALL"), COUNT]),
                Arg::block("ids", &[Arg::integer("numids"), Arg::text("id").multiple()])
                    .after("IDS"),
            ],
        ),
    ],
};

fn run(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let words = args.after_key();
    let op = args::redrive::redrive(Words::new(&words))?;
    bulk_ops::run(ctx, args.key()?, op)
}
