//! DQ.FETCH: takes messages of one queue. With BLOCK it waits until there are some.

use super::ack::acknowledge;
use super::apply::{APPLY, IF};
use super::options::{
    BIND, BLOCK, CONSUMER, COUNT, GRACE, GROUP, LEASE, MAX_BYTES, NO_ACK, PER_GROUP, TOKEN,
    WITH_META,
};
use crate::redis::spec::{Access, Arg, CommandSpec, Keys, Positions};
use crate::redis::{Args, CommandResult, Context, Failure, Name};
use crate::server::clock;
use crate::server::commit::{self, Form, Missing};
use crate::server::delivery_reply::DeliveryReply;
use crate::server::effects::{self, Applying};
use crate::server::serving::{self, serve};
use crate::server::waiting::wait_list;
use crate::server::{replay, texts};
use dq_queue::args::fetch::FetchRequest;
use dq_queue::args::{self, Words};
use dq_queue::codec::effect::{decode_outcomes, encode_outcomes};
use dq_queue::effect::{Apply, Outcomes};
use dq_queue::op::{Applied, Fetch};
use dq_queue::{Done, Op};
use std::borrow::Cow;

pub(super) const SPEC: CommandSpec = CommandSpec {
    name: "DQ.FETCH",
    handler: run,
    flags: "write blocking getkeys-api",
    keys: Keys::FirstAnd(keys),
    access: Access::ReadUpdate,
    summary: "Takes messages that are due, under a lease, and waits for them if asked to.",
    complexity: "O(M log N) with M messages taken or acked and N in the queue",
    args: &[
        Arg::key(),
        COUNT,
        BLOCK,
        LEASE,
        CONSUMER,
        TOKEN,
        GROUP,
        PER_GROUP,
        MAX_BYTES,
        ACKED,
        RESULTS,
        APPLY,
        IF,
        BIND,
        GRACE,
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

const RESULTS: Arg = Arg::block(
    "results",
    &[Arg::integer("numresults"), Arg::text("result").multiple()],
)
.after("RESULTS")
.optional();

fn keys(words: &[&[u8]]) -> Positions {
    effects::keys_in(words, |words| Ok(args::fetch::fetch(words)?.apply))
}

fn run(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let key = args.key()?;
    let words = args.after_key();
    let mut request = args::fetch::fetch(Words::new(&words))?;
    if ctx.is_replay() {
        return replay::command(ctx, key, &Op::Fetch(Cow::Borrowed(&request.fetch)));
    }
    check_bind(ctx, &request)?;
    texts::check_results(request.fetch.results.iter().map(|text| &**text))?;
    let mut delivery = DeliveryReply::to(ctx, false, &request);
    // A command with BLOCK or BIND cannot be repeated verbatim: a replay can neither block a client
    // nor bind a lease to its connection. All that a call with APPLY does is one command of the log.
    let is_plain = request.block.is_none() && request.bind.is_none() && request.apply.is_none();
    let form = match is_plain {
        true => Form::Verbatim,
        false => Form::Entry,
    };
    let collects = request.apply.is_some() && ctx.begin_to_collect();
    let applied = match request.apply.take() {
        Some(apply) => apply_acks(ctx, key, &mut request, &apply, args)
            .map(|applied| delivery.add_applied(applied)),
        None => Ok(()),
    };
    let done = match applied {
        Ok(()) => fetch(ctx, key, request, form, delivery),
        Err(failure) => Err(failure),
    };
    if collects {
        ctx.replicate_collected();
    }
    done
}

/// Acknowledges the one message that the request names, and applies what goes with it. Returns
/// `None` if its receipt is stale. A FETCH that repeats its token has the same outcomes as before,
/// and does nothing.
///
/// Errors: those of [`Applying::run`]. Then nothing was done.
#[cold]
fn apply_acks(
    ctx: &mut Context,
    key: Name<'_>,
    request: &mut FetchRequest<'_>,
    apply: &Apply<'_>,
    args: Args<'_>,
) -> Result<Option<Outcomes>, Failure> {
    let receipts = std::mem::take(&mut request.fetch.acks);
    let results = std::mem::take(&mut request.fetch.results);
    let token = request
        .fetch
        .consumer
        .clone()
        .zip(request.fetch.token.clone());
    if let Some((consumer, token)) = &token {
        let opened = ctx.open_read(key)?;
        let queue = opened.get();
        let known = queue.and_then(|queue| queue.applied(consumer, token));
        if let Some(known) = known {
            return Ok(decode_outcomes(known).ok());
        }
    }
    let receipt = receipts.first().copied().unwrap_or_default();
    let op = Op::acks(receipts, results);
    let applying = Applying::new(key, receipt, apply, |at| args.name(at + 2));
    let applied = applying.run(ctx, |ctx| acknowledge(ctx, key, &op))?;
    let outcomes = applied.map(|(outcomes, ())| outcomes);
    if let (Some(outcomes), Some((consumer, token))) = (&outcomes, token) {
        let outcomes = encode_outcomes(outcomes).into();
        let op = Op::Applied(Applied {
            consumer,
            token,
            outcomes,
        });
        commit::run(ctx, key, &op, Missing::Nothing, |_, _| ())?;
    }
    Ok(outcomes)
}

/// Takes messages, or waits for them.
fn fetch(
    ctx: &mut Context,
    key: Name<'_>,
    mut request: FetchRequest<'_>,
    form: Form,
    delivery: DeliveryReply,
) -> CommandResult {
    // A repeated delivery takes no message from the clients that have come earlier.
    let is_next = repeats(ctx, key, &request.fetch)? || is_next(ctx, key);
    if let (Some(ms), false) = (request.block, is_next) {
        ctx.open_read(key)?;
        let receipts = std::mem::take(&mut request.fetch.acks);
        if !receipts.is_empty() {
            let results = std::mem::take(&mut request.fetch.results);
            let op = Op::acks(receipts, results);
            commit::run(ctx, key, &op, Missing::Nothing, |_, _| ())?;
        }
        serving::block(ctx, &[key], ms, request.fetch, delivery);
        return Ok(());
    }
    if !take(ctx, key, &request.fetch, form, &delivery)? {
        block_or_answer(ctx, &[key], request, delivery);
    }
    Ok(())
}

/// Refuses to bind leases to a script: its client has no connection that could close, so they
/// would not end as BIND promises.
pub(super) fn check_bind(ctx: &Context, request: &FetchRequest<'_>) -> CommandResult {
    match request.bind.is_some() && ctx.is_in_script() {
        true => {
            Err("ERR BIND cannot be used in a script, which has no connection to bind to".into())
        }
        false => Ok(()),
    }
}

/// Whether a fetch repeats the last delivery of its consumer, by its token.
pub(super) fn repeats(
    ctx: &mut Context,
    key: Name<'_>,
    fetch: &Fetch<'_>,
) -> Result<bool, Failure> {
    if fetch.token.is_none() {
        return Ok(false);
    }
    let moment = clock::now();
    let opened = ctx.open_read(key)?;
    let queue = opened.get();
    Ok(queue.is_some_and(|queue| queue.can_repeat(fetch, queue.time(moment))))
}

/// Handles a fetch for which there were no messages: blocks the client if it has asked for that and
/// can be blocked, otherwise replies that there are none.
pub(super) fn block_or_answer(
    ctx: &mut Context,
    keys: &[Name<'_>],
    request: FetchRequest<'_>,
    delivery: DeliveryReply,
) {
    match request.block {
        Some(ms) if !ctx.deny_blocking() => {
            serving::block(ctx, keys, ms, request.fetch, delivery);
        }
        _ => delivery.write_nothing(ctx.reply()),
    }
}

/// Whether this client may take messages now. Blocked clients have come earlier, so they are served
/// first with the messages that this turn of the event loop has brought; there may be more of them
/// than can be served at once. Inside MULTI and scripts no other client is served, and this one
/// cannot be blocked, so it always may.
pub(super) fn is_next(ctx: &mut Context, key: Name<'_>) -> bool {
    !wait_list::any_scheduled() || ctx.deny_blocking() || serve::before_command(ctx, key)
}

/// Fetches messages, and writes them if there are any. Returns whether there were any.
pub(super) fn take(
    ctx: &mut Context,
    key: Name<'_>,
    fetch: &Fetch<'_>,
    form: Form,
    delivery: &DeliveryReply,
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
