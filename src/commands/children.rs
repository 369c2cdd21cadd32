//! DQ.CHILDREN: lists the children of a message, page by page. They may be in several queues.

use super::inspect::{inspect, write_page};
use super::options::{COUNT, CURSOR};
use crate::redis::spec::{Access, Arg, CommandSpec, Keys};
use crate::redis::{Args, CommandResult, Context, Reply};
use crate::server::children::{list, queues_of_children, Child};
use dq_queue::args::{self, Words};

pub(super) const SPEC: CommandSpec = CommandSpec {
    name: "DQ.CHILDREN",
    handler: run,
    flags: "readonly",
    keys: Keys::First,
    access: Access::Read,
    summary: "Lists the children of a message, step by step.",
    complexity:
        "O(COUNT + N) for each step, with N messages among which it looks, a bounded number",
    args: &[Arg::key(), Arg::text("id"), CURSOR, COUNT],
};

fn run(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let key = args.key()?;
    let words = args.after_key();
    let request = args::children::children(Words::new(&words))?;
    let queues = inspect(ctx, key, |_, queue| {
        queue.map_or(Vec::new(), |(queue, _)| {
            queues_of_children(queue, request.id)
        })
    })?;
    let (next, children) = list(
        ctx,
        SPEC.name,
        (key, request.id),
        &queues,
        request.cursor,
        request.count,
    );
    let reply = ctx.reply();
    write_page(reply, next, children.len());
    for child in children {
        write_child(reply, &child);
    }
    Ok(())
}

fn write_child(reply: Reply<'_>, child: &Child) {
    reply.map(5);
    reply.field("key", &child.key);
    reply.field("id", &child.id);
    reply.field("state", child.state.name());
    reply.field("result", child.result.as_deref());
    reply.field("error", child.error.as_deref());
}
