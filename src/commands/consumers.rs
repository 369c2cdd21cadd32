//! DQ.CONSUMERS: lists the consumers of a queue.

use super::inspect::inspect;
use super::FIRST;
use crate::redis::spec::{Access, Arg, CommandSpec, Keys};
use crate::redis::{Args, CommandResult, Context};
use crate::server::message_reply::field;

/// The description of the command, for the server and for COMMAND DOCS.
pub const SPEC: CommandSpec = CommandSpec {
    name: "DQ.CONSUMERS",
    handler: run,
    flags: "readonly",
    arity: 2,
    keys: Keys::First,
    access: Access::Read,
    summary: "Lists the consumers of a queue.",
    complexity: "O(C) with C consumers",
    since: FIRST,
    args: &[Arg::key()],
};

fn run(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let key = args.key()?;
    inspect(ctx, key, |reply, queue| {
        let consumers = queue.map_or(Vec::new(), |(queue, _)| queue.consumers());
        reply.array(consumers.len());
        for consumer in consumers {
            reply.map(6);
            field(reply, "name");
            reply.bulk(&consumer.name);
            field(reply, "running");
            reply.unsigned(consumer.running);
            field(reply, "last-seen");
            reply.unsigned(consumer.last_seen);
            field(reply, "delivered");
            reply.unsigned(consumer.delivered);
            field(reply, "acked");
            reply.unsigned(consumer.acked);
            field(reply, "nacked");
            reply.unsigned(consumer.nacked);
        }
    })
}
