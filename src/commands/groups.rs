//! DQ.GROUPS: lists the groups of a queue, page by page.

use super::inspect::{inspect, write_page};
use super::options::{COUNT, CURSOR};
use crate::redis::spec::{Access, Arg, CommandSpec, Keys};
use crate::redis::{Args, CommandResult, Context, Reply};
use dq_queue::args::{self, Words};
use dq_queue::queue::inspect::groups::GroupView;
use dq_queue::Queue;

pub(super) const SPEC: CommandSpec = CommandSpec {
    name: "DQ.GROUPS",
    handler: run,
    flags: "readonly",
    keys: Keys::First,
    access: Access::Read,
    summary: "Lists the groups of a queue, step by step.",
    complexity: "O(log G + COUNT) for each step, with G groups",
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
    reply.field("group", &view.group.name);
    reply.field("state", view.state.name());
    reply.field("waiting", view.waiting);
    reply.field("running", u64::from(view.group.running));
    let head = view.head.map(|(seq, message)| queue.id_of(seq, message));
    reply.field("head", head.as_ref().map(|id| id.as_bytes()));
    let due_at = view.head.map(|(_, message)| message.due_at());
    reply.field("head-due-at", due_at);
    reply.field("lease-until", view.lease_until);
    reply.field("weight", view.group.weight());
    reply.field("concurrency", view.concurrency);
    reply.field("breaker", view.breaker.as_bytes());
    reply.field("open-until", view.open_until);
}
