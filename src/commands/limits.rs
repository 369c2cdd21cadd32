//! DQ.LIMITS: lists the limits of a queue, and their usage, page by page.

use super::inspect::{inspect, write_page};
use super::options::{COUNT, CURSOR};
use super::FIRST;
use crate::redis::spec::{Access, Arg, CommandSpec, Keys};
use crate::redis::{Args, CommandResult, Context, Reply};
use crate::server::message_reply::{field, text, time};
use dq_queue::args::{self, Words};
use dq_queue::named_limits::{Limit, NamedLimits};
use dq_queue::{Millis, Queue};

/// The description of the command, for the server and for COMMAND DOCS.
pub const SPEC: CommandSpec = CommandSpec {
    name: "DQ.LIMITS",
    handler: run,
    flags: "readonly",
    arity: -2,
    keys: Keys::First,
    access: Access::Read,
    summary: "Lists limits and patterns, and what is used of each, step by step.",
    complexity: "O(COUNT) for each step",
    since: FIRST,
    args: &[Arg::key(), CURSOR, COUNT],
};

fn run(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let key = args.key()?;
    let words = args.after_key();
    let request = args::batches::batches(Words::new(&words))?;
    inspect(ctx, key, |reply, queue| {
        let limits = queue.and_then(|(queue, _): (&Queue, Millis)| queue.limits());
        let limits = limits.into_iter();
        let mut listed = limits.flat_map(|limits: &NamedLimits| limits.starting_at(request.cursor));
        let page: Vec<_> = listed.by_ref().take(request.count).collect();
        let last = page.last().map(|(ix, _)| ix.number() + 1);
        write_page(reply, last.filter(|_| listed.next().is_some()), page.len());
        let now = queue.map_or(0, |(_, now)| now);
        for (_, limit) in page {
            write_limit(reply, limit, now);
        }
    })
}

fn write_limit(reply: Reply<'_>, limit: &Limit, now: Millis) {
    // A pattern counts nothing itself, so it has no rule in force.
    let rule = limit.rule.as_ref().or(limit.own.as_ref());
    reply.map(9);
    field(reply, "limit");
    reply.bulk(&limit.name);
    field(reply, "rule");
    let own = limit.own.as_ref().map(|_| &*limit.name);
    text(reply, limit.pattern.as_deref().or(own));
    field(reply, "concurrency");
    reply.unsigned(rule.map_or(0, |rule| rule.concurrency));
    field(reply, "weight");
    reply.unsigned(u64::from(rule.is_some_and(|rule| rule.weighted)));
    field(reply, "rates");
    let rates = rule.map_or(&[][..], |rule| &rule.rates);
    reply.array(rates.len());
    let mut windows = limit.windows();
    for rate in rates {
        let window = windows.next();
        let free = window.map_or(rate.count, |(rate, window)| window.free(rate, now));
        reply.array(3);
        reply.unsigned(rate.count);
        reply.unsigned(rate.per);
        reply.unsigned(rate.count - free);
    }
    field(reply, "running");
    reply.unsigned(limit.running);
    field(reply, "running-cost");
    reply.unsigned(limit.running_cost);
    field(reply, "waiting");
    reply.unsigned(limit.waiting() as u64);
    field(reply, "next-free");
    let next = limit.room_at(1).map(|at| at.max(now));
    time(reply, next.filter(|_| !limit.is_pattern()));
}
