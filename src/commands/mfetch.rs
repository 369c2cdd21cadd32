//! DQ.MFETCH: takes messages of the first of several queues that has a message.

use super::fetch::{block_or_answer, check_bind, is_next, repeats, take};
use super::options::{
    BIND, BLOCK, CONSUMER, COUNT, GRACE, LEASE, MAX_BYTES, NO_ACK, PER_GROUP, TOKEN, WITH_META,
};
use crate::redis::spec::{Access, Arg, CommandSpec, Keys};
use crate::redis::{Args, CommandResult, Context, Failure, Name};
use crate::server::clock;
use crate::server::commit::Form;
use crate::server::delivery_reply::DeliveryReply;
use dq_queue::args::fetch::MultiFetch;
use dq_queue::args::{self, Words};
use dq_queue::op::Fetch;

pub(super) const SPEC: CommandSpec = CommandSpec {
    name: "DQ.MFETCH",
    handler: run,
    flags: "write blocking getkeys-api",
    keys: Keys::Counted,
    access: Access::ReadUpdate,
    summary: "Takes messages of the first of several queues that has any.",
    complexity: "O(K + M log N) with K keys, M messages taken and N in their queue",
    args: &[
        Arg::integer("numkeys"),
        Arg::key().multiple(),
        COUNT,
        BLOCK,
        LEASE,
        CONSUMER,
        TOKEN,
        PER_GROUP,
        MAX_BYTES,
        BIND,
        GRACE,
        NO_ACK,
        WITH_META,
    ],
};

fn run(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let words = args.after_name();
    let MultiFetch { keys, request } = args::fetch::multi(Words::new(&words))?;
    check_bind(ctx, &request)?;
    let keys: Vec<Name<'_>> = args.names(keys).collect();
    let first = first_with_messages(ctx, &keys, &request.fetch)?;
    let delivery = DeliveryReply::to(ctx, true, &request);
    let fetch = &request.fetch;
    for key in &keys {
        if repeats(ctx, *key, fetch)? && take(ctx, *key, fetch, Form::Entry, &delivery)? {
            return Ok(());
        }
    }
    for key in &keys[first..] {
        if !is_next(ctx, *key) && request.block.is_some() {
            continue;
        }
        if has_any(ctx, *key, fetch)? && take(ctx, *key, fetch, Form::Entry, &delivery)? {
            return Ok(());
        }
    }
    block_or_answer(ctx, &keys, request, delivery);
    Ok(())
}

/// The position of the first queue that has messages for a fetch, or the number of keys. Error: any
/// key holds another type.
fn first_with_messages(
    ctx: &mut Context,
    keys: &[Name<'_>],
    fetch: &Fetch<'_>,
) -> Result<usize, Failure> {
    let moment = clock::now();
    let mut first = None;
    for (position, key) in keys.iter().enumerate() {
        let opened = ctx.open_read(*key)?;
        let queue = opened.get().filter(|_| first.is_none());
        if queue.is_some_and(|queue| queue.can_serve(fetch, queue.now(moment))) {
            first = Some(position);
        }
    }
    Ok(first.unwrap_or(keys.len()))
}

/// Whether a queue has messages for a fetch. This does not change the queue, so the command changes
/// at most one queue, and one command needs only one log entry.
fn has_any(ctx: &mut Context, key: Name<'_>, fetch: &Fetch<'_>) -> Result<bool, Failure> {
    let moment = clock::now();
    let opened = ctx.open_read(key)?;
    let queue = opened.get();
    Ok(queue.is_some_and(|queue| queue.can_serve(fetch, queue.time(moment))))
}
