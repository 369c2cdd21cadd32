//! DQ.LIMITS: lists the limits of a queue, and their usage, page by page.

use super::inspect::{inspect, write_page};
use super::options::{COUNT, CURSOR};
use crate::redis::spec::{Access, Arg, CommandSpec, Keys};
use crate::redis::{Args, CommandResult, Context, Reply};
use dq_queue::args::{self, Words};
use dq_queue::named_limits::{Limit, NamedLimits};
use dq_queue::{Millis, Queue};

pub(super) const SPEC: CommandSpec = CommandSpec {
    name: "DQ.LIMITS",
    handler: run,
    flags: "readonly",
    keys: Keys::First,
    access: Access::Read,
    summary: "Lists limits and patterns, and what is used of each, step by step.",
    complexity: "O(COUNT) for each step",
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
    reply.field("limit", &limit.name);
    let own = limit.own.as_ref().map(|_| &*limit.name);
    reply.field("rule", limit.pattern.as_deref().or(own));
    reply.field("concurrency", rule.map_or(0, |rule| rule.concurrency));
    reply.field("weight", u64::from(rule.is_some_and(|rule| rule.weighted)));
    reply.name("rates");
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
    reply.field("running", limit.running);
    reply.field("running-cost", limit.running_cost.get());
    reply.field("waiting", limit.waiting() as u64);
    if limit.is_stuck() {
        return reply.field("next-free", "never");
    }
    let next = limit.room_at(1).map(|at| at.max(now));
    reply.field("next-free", next.filter(|_| !limit.is_pattern()));
}
