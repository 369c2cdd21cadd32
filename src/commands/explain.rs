//! DQ.EXPLAIN: says why a message is not being delivered now.

use super::inspect::{events_error, inspect};
use super::FIRST;
use crate::redis::spec::{Access, Arg, CommandSpec, Keys};
use crate::redis::{Args, CommandResult, Context};
use crate::server::message_reply::{field, text, time};
use dq_queue::args::{self, Words};

/// The description of the command, for the server and for COMMAND DOCS.
pub const SPEC: CommandSpec = CommandSpec {
    name: "DQ.EXPLAIN",
    handler: run,
    flags: "readonly",
    arity: 3,
    keys: Keys::First,
    access: Access::Read,
    summary: "Says why a message is not being delivered now.",
    complexity: "O(log N) with N messages in the queue",
    since: FIRST,
    args: &[Arg::key(), Arg::text("id")],
};

fn run(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let key = args.key()?;
    let words = args.after_key();
    let id = args::get::message(Words::new(&words))?;
    let events_error = events_error(ctx, key)?;
    inspect(ctx, key, |reply, queue| {
        let Some(explanation) = queue.and_then(|(queue, now)| queue.explain(id, now)) else {
            return reply.null();
        };
        reply.map(4);
        field(reply, "code");
        reply.bulk(explanation.code.name().as_bytes());
        field(reply, "why");
        let mut why = explanation.why;
        if let Some(error) = events_error {
            why += " Its events are not noted: ";
            why += error;
            why.push('.');
        }
        reply.bulk(why.as_bytes());
        field(reply, "until");
        time(reply, explanation.until);
        field(reply, "by");
        text(reply, explanation.by.as_deref());
    })
}
