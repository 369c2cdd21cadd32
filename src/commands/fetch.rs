//! DQ.FETCH: takes messages of one queue, at once or when there are some.

use super::options::{
    BIND, BLOCK, CONSUMER, COUNT, GROUP, LEASE, MAX_BYTES, NO_ACK, PER_GROUP, WITH_META,
};
use super::FIRST;
use crate::redis::spec::{Access, Arg, CommandSpec, Keys};
use crate::redis::{Args, CommandResult, Context, Failure, Name};
use crate::server::blocked_fetch::{self, serve, wait_list};
use crate::server::commit::{self, Form, Missing};
use crate::server::delivery::Delivery;
use crate::server::replay;
use dq_queue::args::fetch::FetchRequest;
use dq_queue::args::{self, Words};
use dq_queue::op::Fetch;
use dq_queue::{Done, Op};
use std::borrow::Cow;

/// How the server and its users are told of it.
pub const SPEC: CommandSpec = CommandSpec {
    name: "DQ.FETCH",
    handler: run,
    flags: "write blocking",
    arity: -2,
    keys: Keys::First,
    access: Access::ReadUpdate,
    summary: "Takes messages that are due, under a lease, and waits for them if asked to.",
    complexity: "O(M log N) with M messages taken or acked and N in the queue",
    since: FIRST,
    args: &[
        Arg::key(),
        COUNT,
        BLOCK,
        LEASE,
        CONSUMER,
        GROUP,
        PER_GROUP,
        MAX_BYTES,
        ACKED,
        BIND,
        NO_ACK,
        WITH_META,
    ],
};

const ACKED: Arg = Arg::block(
    "ack",
    &[
        Arg::integer("numreceipts"),
        Arg::integer("receipt").multiple(),
    ],
)
.after("ACK")
.optional();

fn run(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let key = args.key()?;
    let words = args.after_key();
    let mut request = args::fetch::fetch(Words::new(&words))?;
    if ctx.is_replay() {
        return replay::command(ctx, key, &Op::Fetch(Cow::Borrowed(&request.fetch)));
    }
    let delivery = Delivery::to(ctx, false, request.with_meta, request.bind);
    if let (Some(ms), false) = (request.block, is_next(ctx, key)) {
        ctx.open_read(key)?;
        let receipts = std::mem::take(&mut request.fetch.acks);
        if !receipts.is_empty() {
            let op = Op::Ack {
                receipts,
                result: None,
            };
            commit::run(ctx, key, &op, Missing::Nothing, |_, _| ())?;
        }
        blocked_fetch::block(ctx, &[key], ms, request.fetch, delivery);
        return Ok(());
    }
    // Nobody waits in the log, and no connection ends there.
    let form = match request.block.is_some() || request.bind {
        true => Form::Entry,
        false => Form::Verbatim,
    };
    if !take(ctx, key, &request.fetch, form, delivery)? {
        block_or_answer(ctx, &[key], request, delivery);
    }
    Ok(())
}

/// There was nothing: blocks the client if that is asked for and possible, or answers so.
pub(super) fn block_or_answer(
    ctx: &mut Context,
    keys: &[Name<'_>],
    request: FetchRequest<'_>,
    delivery: Delivery,
) {
    match request.block {
        Some(ms) if !ctx.deny_blocking() => {
            blocked_fetch::block(ctx, keys, ms, request.fetch, delivery);
        }
        _ => delivery.write_nothing(ctx.reply()),
    }
}

/// Whether this client may take messages now. Blocked clients came earlier: they are served first
/// with what has come in this turn of the server, and there may be more of them than can be served
/// at once. Inside MULTI and scripts nobody else is served, and nobody can be blocked.
pub(super) fn is_next(ctx: &mut Context, key: Name<'_>) -> bool {
    !wait_list::any_scheduled() || ctx.deny_blocking() || serve::before_command(ctx, key)
}

/// Fetches, and writes what there is. Returns whether there was anything.
pub(super) fn take(
    ctx: &mut Context,
    key: Name<'_>,
    fetch: &Fetch<'_>,
    form: Form,
    delivery: Delivery,
) -> Result<bool, Failure> {
    let op = &Op::Fetch(Cow::Borrowed(fetch));
    let mut has_given = false;
    commit::run_in_form(ctx, key, op, Missing::Nothing, form, |reply, outcome| {
        if let Some((queue, Done::Fetched(given))) = outcome {
            if !given.is_empty() {
                has_given = true;
                delivery.write(reply, key, queue, given);
            }
        }
    })?;
    Ok(has_given)
}
