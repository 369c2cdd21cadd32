//! DQ.BATCHES: lists the open batches of a queue, page by page.

use super::inspect::{inspect, write_page};
use super::options::{COUNT, CURSOR};
use crate::redis::spec::{Access, Arg, CommandSpec, Keys};
use crate::redis::{Args, CommandResult, Context, Reply};
use dq_queue::args::{self, Words};
use dq_queue::index::batches::NamedBatch;

pub(super) const SPEC: CommandSpec = CommandSpec {
    name: "DQ.BATCHES",
    handler: run,
    flags: "readonly",
    keys: Keys::First,
    access: Access::Read,
    summary: "Lists the open batches of a queue, step by step.",
    complexity: "O(log B + COUNT) for each step, with B open batches",
    args: &[Arg::key(), CURSOR, COUNT],
};

fn run(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let key = args.key()?;
    let words = args.after_key();
    let request = args::batches::batches(Words::new(&words))?;
    inspect(ctx, key, |reply, queue| {
        let batches = queue.and_then(|(queue, _)| queue.batches());
        let mut open = batches
            .into_iter()
            .flat_map(|batches| batches.open_after(request.cursor));
        let page: Vec<_> = open.by_ref().take(request.count).collect();
        let last = page.last().map(|(number, _)| *number);
        write_page(reply, last.filter(|_| open.next().is_some()), page.len());
        for (_, batch) in page {
            write_batch(reply, batch);
        }
    })
}

fn write_batch(reply: Reply<'_>, batch: &NamedBatch) {
    reply.map(7);
    reply.field("batch", &batch.name);
    for (name, count) in [
        ("pending", batch.counts.pending),
        ("running", batch.counts.running),
        ("dead", batch.counts.dead),
        ("finished", batch.counts.finished),
        ("cancelled", batch.counts.cancelled),
        ("held", batch.held_count()),
    ] {
        reply.field(name, count);
    }
}
