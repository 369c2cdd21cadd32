//! DQ.PARTITIONS: the names of all queues of a family.

use super::FIRST;
use crate::redis::spec::{Access, Arg, CommandSpec, Keys};
use crate::redis::{Args, CommandResult, Context};
use dq_queue::args::{self, Words};

/// The description of the command, for the server and for COMMAND DOCS.
pub const SPEC: CommandSpec = CommandSpec {
    name: "DQ.PARTITIONS",
    handler: run,
    flags: "readonly fast",
    arity: 3,
    keys: Keys::None,
    access: Access::Read,
    summary: "Returns the names of all queues of a family.",
    complexity: "O(P) with P partitions",
    since: FIRST,
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
