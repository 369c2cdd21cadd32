//! DQ.CONSUMERS: lists the consumers of a queue.

use super::inspect::inspect;
use crate::redis::spec::{Access, Arg, CommandSpec, Keys};
use crate::redis::{Args, CommandResult, Context};

pub(super) const SPEC: CommandSpec = CommandSpec {
    name: "DQ.CONSUMERS",
    handler: run,
    flags: "readonly",
    keys: Keys::First,
    access: Access::Read,
    summary: "Lists the consumers of a queue.",
    complexity: "O(C) with C consumers",
    args: &[Arg::key()],
};

fn run(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let key = args.key()?;
    inspect(ctx, key, |reply, queue| {
        let consumers = queue.map_or(Vec::new(), |(queue, _)| queue.consumers());
        reply.array(consumers.len());
        for consumer in consumers {
            reply.map(6);
            reply.field("name", &consumer.name);
            reply.field("running", consumer.running);
            reply.field("last-seen", consumer.last_seen);
            reply.field("delivered", consumer.delivered.get());
            reply.field("acked", consumer.acked.get());
            reply.field("nacked", consumer.nacked.get());
        }
    })
}
