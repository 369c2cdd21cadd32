//! DQ.EXPLAIN: says why a message is not being delivered now.

use super::inspect::{events_error, inspect};
use crate::redis::spec::{Access, Arg, CommandSpec, Keys};
use crate::redis::{Args, CommandResult, Context};
use crate::server::children::{first_open, queues_of_children, waits_for_dead};
use dq_queue::args::{self, Words};
use dq_queue::queue::inspect::explain::Code;

pub(super) const SPEC: CommandSpec = CommandSpec {
    name: "DQ.EXPLAIN",
    handler: run,
    flags: "readonly",
    keys: Keys::First,
    access: Access::Read,
    summary: "Says why a message is not being delivered now.",
    complexity: "O(log N) with N messages in the queue",
    args: &[Arg::key(), Arg::text("id")],
};

fn run(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let key = args.key()?;
    let words = args.after_key();
    let id = args::get::message(Words::new(&words))?;
    let events_error = events_error(ctx, key)?;
    let explained = inspect(ctx, key, |_, queue| {
        let (queue, now) = queue?;
        let kin = (queues_of_children(queue, id), waits_for_dead(queue, id));
        Some((queue.explain(id, now)?, kin))
    })?;
    let Some((mut explanation, (queues, dead_first))) = explained else {
        ctx.reply().null();
        return Ok(());
    };
    if explanation.code == Code::ChildrenOpen {
        explanation.by = first_open(ctx, SPEC.name, (key, id), &queues, dead_first);
    }
    let reply = ctx.reply();
    reply.map(4);
    reply.field("code", explanation.code.name());
    let mut why = explanation.why;
    if let Some(error) = events_error {
        why += " Its events are not noted: ";
        why += error;
        why.push('.');
    }
    reply.field("why", &why);
    reply.field("until", explanation.until);
    reply.field("by", explanation.by.as_deref());
    Ok(())
}
