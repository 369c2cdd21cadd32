//! DQ.FETCH and DQ.MFETCH: served at once, or when there is something.

use crate::command::apply;
use crate::command::consumer;
use crate::command::execute::{self, Form, Missing};
use crate::command::handover::Handover;
use crate::command::parse::fetch::{self, FetchRequest};
use crate::command::parse::{self, Words};
use crate::core::{Done, Op};
use crate::ffi::{Args, CommandResult, Context, Failure, Name};
use crate::runtime::{moment, serve, waiters};

/// Delivers messages of one queue.
pub fn fetch(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let key = parse::key(args)?;
    let request = fetch::fetch(Words::after_key(args))?;
    let FetchRequest {
        mut fetch,
        block,
        bind,
        with_meta,
    } = request;
    if ctx.is_replay() {
        return apply::repeat_command(ctx, key, &Op::Fetch(fetch));
    }
    let handover = Handover::to(ctx, false, with_meta, bind);
    if let (Some(ms), false) = (block, is_next(ctx, key)) {
        ctx.open_read(key)?;
        let receipts = std::mem::take(&mut fetch.acks);
        if !receipts.is_empty() {
            let op = Op::Ack {
                receipts,
                result: None,
            };
            execute::run(ctx, key, &op, Missing::Nothing, |_, _| ())?;
        }
        consumer::wait(ctx, &[key], ms, fetch, handover);
        return Ok(());
    }
    let op = Op::Fetch(fetch);
    // In the log nobody waits, and no connection ends.
    let form = match block.is_some() || bind {
        true => Form::Record,
        false => Form::Command,
    };
    if take(ctx, key, &op, form, handover)? {
        return Ok(());
    }
    match (op, block) {
        (Op::Fetch(fetch), Some(ms)) if !ctx.deny_blocking() => {
            consumer::wait(ctx, &[key], ms, fetch, handover);
        }
        _ => handover.give_nothing(ctx.reply()),
    }
    Ok(())
}

/// Delivers messages of the first of several queues that has any.
pub fn fetch_of_many(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let request = fetch::multi(Words::from_first(args))?;
    let keys: Vec<Name<'_>> = request.keys.filter_map(|n| args.name(n)).collect();
    let FetchRequest {
        fetch,
        block,
        bind,
        with_meta,
    } = request.request;
    for key in &keys {
        ctx.open_read(*key)?;
    }
    let handover = Handover::to(ctx, true, with_meta, bind);
    let op = Op::Fetch(fetch);
    for key in &keys {
        if !is_next(ctx, *key) && block.is_some() {
            continue;
        }
        if has_any(ctx, *key, &op)? && take(ctx, *key, &op, Form::Record, handover)? {
            return Ok(());
        }
    }
    match (op, block) {
        (Op::Fetch(fetch), Some(ms)) if !ctx.deny_blocking() => {
            consumer::wait(ctx, &keys, ms, fetch, handover);
        }
        _ => handover.give_nothing(ctx.reply()),
    }
    Ok(())
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
fn has_any(ctx: &mut Context, key: Name<'_>, op: &Op<'_>) -> Result<bool, Failure> {
    let moment = moment::now();
    let opened = ctx.open_read(key)?;
    Ok(match (opened.get(), op) {
        (Some(queue), Op::Fetch(fetch)) => queue.can_serve(fetch, queue.now(moment)),
        _ => false,
    })
}

/// Fetches, and hands over what there is; whether there was anything.
fn take(
    ctx: &mut Context,
    key: Name<'_>,
    op: &Op<'_>,
    form: Form,
    handover: Handover,
) -> Result<bool, Failure> {
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
