//! DQ.PARTITIONS: the names of all queues of a family.

use crate::redis::spec::{Access, Arg, CommandSpec, Keys};
use crate::redis::{Args, CommandResult, Context};
use dq_queue::args::{self, Words};

pub(super) const SPEC: CommandSpec = CommandSpec {
    name: "DQ.PARTITIONS",
    handler: run,
    flags: "readonly fast",
    keys: Keys::None,
    access: Access::Read,
    summary: "Returns the names of all queues of a family.",
    complexity: "O(P) with P partitions",
    args: &[Arg::text("family"), Arg::integer("partitions")],
};

fn run(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let words = args.after_name();
    let (name, partitions) = args::family::partitions(Words::new(&words))?;
    let reply = ctx.reply();
    reply.array(partitions.count() as usize);
    for key in partitions.keys(name) {
        reply.bulk(&key);
    }
    Ok(())
}
