//! DQ.FETCH and DQ.MFETCH: served at once, or when there is something.

use std::borrow::Cow;

use crate::command::apply;
use crate::command::consumer;
use crate::command::execute::{self, Form, Missing};
use crate::command::handover::Handover;
use crate::ffi::{Args, CommandResult, Context, Failure, Name};
use crate::runtime::{moment, serve, waiters};
use dq_queue::args::fetch::{self, FetchRequest, MultiFetch};
use dq_queue::args::Words;
use dq_queue::op::Fetch;
use dq_queue::{Done, Op};

/// Delivers messages of one queue.
pub fn fetch(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let key = args.key()?;
    let words = args.after_key();
    let mut request = fetch::fetch(Words::new(&words))?;
    if ctx.is_replay() {
        return apply::repeat_command(ctx, key, &Op::Fetch(Cow::Borrowed(&request.fetch)));
    }
    let handover = Handover::to(ctx, false, request.with_meta, request.bind);
    if let (Some(ms), false) = (request.block, is_next(ctx, key)) {
        ctx.open_read(key)?;
        let receipts = std::mem::take(&mut request.fetch.acks);
        if !receipts.is_empty() {
            let op = Op::Ack {
                receipts,
                result: None,
            };
            execute::run(ctx, key, &op, Missing::Nothing, |_, _| ())?;
        }
        consumer::wait(ctx, &[key], ms, request.fetch, handover);
        return Ok(());
    }
    // In the log nobody waits, and no connection ends.
    let form = match request.block.is_some() || request.bind {
        true => Form::Record,
        false => Form::Command,
    };
    if !take(ctx, key, &request.fetch, form, handover)? {
        wait_or_go(ctx, &[key], request, handover);
    }
    Ok(())
}

/// Delivers messages of the first of several queues that has any.
pub fn fetch_of_many(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let words = args.after_name();
    let MultiFetch { keys, request } = fetch::multi(Words::new(&words))?;
    let keys: Vec<Name<'_>> = args.names(keys).collect();
    for key in &keys {
        ctx.open_read(*key)?;
    }
    let handover = Handover::to(ctx, true, request.with_meta, request.bind);
    let fetch = &request.fetch;
    for key in &keys {
        if !is_next(ctx, *key) && request.block.is_some() {
            continue;
        }
        if has_any(ctx, *key, fetch)? && take(ctx, *key, fetch, Form::Record, handover)? {
            return Ok(());
        }
    }
    wait_or_go(ctx, &keys, request, handover);
    Ok(())
}

/// There was nothing: waits, if that is asked for and possible, or says so.
fn wait_or_go(ctx: &mut Context, keys: &[Name<'_>], request: FetchRequest<'_>, handover: Handover) {
    match request.block {
        Some(ms) if !ctx.deny_blocking() => {
            consumer::wait(ctx, keys, ms, request.fetch, handover);
        }
        _ => handover.give_nothing(ctx.reply()),
    }
}

/// Those who wait came earlier: what has come for them in this turn of the
/// server is theirs. Whether they have it; there may be more of them than can
/// be served at once. Inside MULTI and scripts nobody else is served, nor is
/// there any waiting.
fn is_next(ctx: &mut Context, key: Name<'_>) -> bool {
    !waiters::any_noted() || ctx.deny_blocking() || serve::before_command(ctx, key)
}

/// Whether a queue has anything for a fetch. One that has not is not touched:
/// one command, one record.
fn has_any(ctx: &mut Context, key: Name<'_>, fetch: &Fetch<'_>) -> Result<bool, Failure> {
    let moment = moment::now();
    let opened = ctx.open_read(key)?;
    let queue = opened.get();
    Ok(queue.is_some_and(|queue| queue.can_serve(fetch, queue.now(moment))))
}

/// Fetches, and hands over what there is; whether there was anything.
fn take(
    ctx: &mut Context,
    key: Name<'_>,
    fetch: &Fetch<'_>,
    form: Form,
    handover: Handover,
) -> Result<bool, Failure> {
    let op = &Op::Fetch(Cow::Borrowed(fetch));
    let mut has_given = false;
    execute::run_in_form(ctx, key, op, Missing::Nothing, form, |reply, outcome| {
        if let Some((queue, Done::Fetched(given))) = outcome {
            if !given.is_empty() {
                has_given = true;
                handover.give(reply, key, queue, given);
            }
        }
    })?;
    Ok(has_given)
}
