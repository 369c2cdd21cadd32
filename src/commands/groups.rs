//! DQ.GROUPS: lists the groups of a queue, page by page.

use super::inspect::{inspect, write_page};
use super::options::{COUNT, CURSOR};
use super::FIRST;
use crate::redis::spec::{Access, Arg, CommandSpec, Keys};
use crate::redis::{Args, CommandResult, Context, Reply};
use crate::server::message_reply::{field, time};
use dq_queue::args::{self, Words};
use dq_queue::queue::inspect::view::GroupView;
use dq_queue::Queue;

/// The description of the command, for the server and for COMMAND DOCS.
pub const SPEC: CommandSpec = CommandSpec {
    name: "DQ.GROUPS",
    handler: run,
    flags: "readonly",
    arity: -2,
    keys: Keys::First,
    access: Access::Read,
    summary: "Lists the groups of a queue, step by step.",
    complexity: "O(log G + COUNT) for each step, with G groups",
    since: FIRST,
    args: &[
        Arg::key(),
        CURSOR,
        COUNT,
        Arg::one_of(
            "state",
            &[
                Arg::word("ready", "READY"),
                Arg::word("running", "RUNNING"),
                Arg::word("blocked", "BLOCKED"),
                Arg::word("paused", "PAUSED"),
                Arg::word("held", "HELD"),
            ],
        )
        .after("STATE")
        .optional(),
    ],
};

fn run(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let key = args.key()?;
    let words = args.after_key();
    let request = args::groups::groups(Words::new(&words))?;
    inspect(ctx, key, |reply, queue| {
        let Some((queue, now)) = queue else {
            return write_page(reply, None::<u64>, 0);
        };
        let (next, views) = queue.groups(request.cursor, request.count, request.wanted, now);
        write_page(reply, (next != 0).then_some(next), views.len());
        for view in views {
            write_group(reply, queue, &view);
        }
    })
}

fn write_group(reply: Reply<'_>, queue: &Queue, view: &GroupView<'_>) {
    reply.map(11);
    field(reply, "group");
    reply.bulk(&view.group.name);
    field(reply, "state");
    reply.bulk(view.state.name().as_bytes());
    field(reply, "waiting");
    reply.unsigned(view.waiting);
    field(reply, "running");
    reply.unsigned(u64::from(view.group.running));
    field(reply, "head");
    match view.head {
        Some((seq, message)) => reply.bulk(queue.id_of(seq, message).as_bytes()),
        None => reply.null(),
    }
    field(reply, "head-due-at");
    time(reply, view.head.map(|(_, message)| message.due_at()));
    field(reply, "lease-until");
    time(reply, view.lease_until);
    field(reply, "weight");
    reply.unsigned(view.group.weight());
    field(reply, "concurrency");
    reply.unsigned(view.concurrency);
    field(reply, "breaker");
    reply.bulk(view.breaker.as_bytes());
    field(reply, "open-until");
    time(reply, view.open_until);
}
