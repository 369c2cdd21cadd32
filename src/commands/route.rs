//! DQ.ROUTE: the queue of a family that a group belongs to.

use crate::redis::spec::{Access, Arg, CommandSpec, Keys};
use crate::redis::{Args, CommandResult, Context};
use dq_queue::args::{self, Words};
use dq_queue::family;

pub(super) const SPEC: CommandSpec = CommandSpec {
    name: "DQ.ROUTE",
    handler: run,
    flags: "readonly fast",
    keys: Keys::None,
    access: Access::Read,
    summary: "Returns the name of the queue of a family that a group belongs to.",
    complexity: "O(1)",
    args: &[
        Arg::text("family"),
        Arg::integer("partitions"),
        Arg::text("group"),
    ],
};

fn run(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let words = args.after_name();
    let (name, partitions, group) = args::family::route(Words::new(&words))?;
    let tag = partitions.tag(partitions.of_group(group));
    ctx.reply().bulk(&family::key(name, tag));
    Ok(())
}
