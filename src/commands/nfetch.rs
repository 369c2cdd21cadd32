//! DQ.NFETCH: takes messages of any queue of a family that lies on this node.

use std::borrow::Cow;
use std::rc::Rc;

use super::fetch::{check_bind, is_next, repeats, take};
use super::options::{
    BIND, BLOCK, CONSUMER, COUNT, GRACE, LEASE, MAX_BYTES, NO_ACK, PER_GROUP, TOKEN, WITH_META,
};
use crate::redis::spec::{Access, Arg, CommandSpec, Keys};
use crate::redis::{Args, CommandResult, Context, Failure, Name};
use crate::server::commit::{self, Form};
use crate::server::delivery_reply::DeliveryReply;
use crate::server::families::{self, tokens, Query};
use crate::server::serving::{self, slots};
use crate::server::waiting::blocked_fetch::OfFamily;
use dq_queue::args::family::FamilyFetch;
use dq_queue::args::{self, Words};
use dq_queue::op::Fetch;
use dq_queue::{Done, Op, Queue};

pub(super) const SPEC: CommandSpec = CommandSpec {
    name: "DQ.NFETCH",
    handler: run,
    flags: "write blocking no-mandatory-keys",
    keys: Keys::None,
    access: Access::ReadUpdate,
    summary: "Takes messages of any queue of a family on this node, in turn.",
    complexity: "O(M log N) with M messages taken and N in their queue",
    args: &[
        Arg::text("family"),
        COUNT,
        BLOCK,
        LEASE,
        CONSUMER,
        PER_GROUP,
        MAX_BYTES,
        TOKEN,
        BIND,
        GRACE,
        NO_ACK,
        WITH_META,
    ],
};

fn run(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let words = args.after_name();
    let FamilyFetch { family, request } = args::family::fetch(Words::new(&words))?;
    if ctx.is_in_cluster() && ctx.is_in_script() {
        return Err("ERR DQ.NFETCH has no keys, so no script can call it in a cluster".into());
    }
    check_bind(ctx, &request)?;
    families::activate();
    slots::check(ctx);
    let user = ctx.user_name();
    let query = Query {
        db: ctx.db(),
        family,
        user: &user,
        no_ack: request.fetch.no_ack,
    };
    families::check_rights(ctx, query.db, family, &user);
    let delivery = DeliveryReply::to(ctx, true, &request);
    if take_again(ctx, query, &request.fetch, &delivery)? {
        return Ok(());
    }
    let mut after = None;
    while let Some(candidate) = families::next(query, after.as_ref()) {
        let queue = &candidate.1;
        if !families::may_take(ctx, query, queue) {
            continue;
        }
        let key = queue.name();
        if !is_next(ctx, key) && request.block.is_some() {
            after = Some(candidate);
            continue;
        }
        match take_if_any(ctx, key, &request.fetch, &delivery)? {
            Some(true) => {
                families::gave(query.db, family, key.bytes());
                tokens::gave(query.db, family, &request.fetch, key.bytes());
                return Ok(());
            }
            Some(false) => serving::passed_over(ctx, key, query.no_ack),
            None => families::forget(query.db, key.bytes()),
        }
    }
    match request.block {
        Some(ms) if !ctx.deny_blocking() => {
            let family = OfFamily {
                name: Rc::from(family),
                user,
            };
            serving::block_on_family(ctx, family, ms, request.fetch, delivery);
        }
        _ => delivery.write_nothing(ctx.reply()),
    }
    Ok(())
}

/// Repeats the last delivery of the consumer, if the fetch repeats its token. Returns whether
/// it does.
fn take_again(
    ctx: &mut Context,
    query: Query<'_>,
    fetch: &Fetch<'_>,
    delivery: &DeliveryReply,
) -> Result<bool, Failure> {
    for candidate in tokens::candidates(query.db, query.family, fetch) {
        let key = candidate.name();
        let is_it = families::may_take(ctx, query, &candidate)
            && matches!(repeats(ctx, key, fetch), Ok(true));
        if is_it && take(ctx, key, fetch, Form::Entry, delivery)? {
            tokens::gave(query.db, query.family, fetch, key.bytes());
            return Ok(true);
        }
    }
    tokens::not_found(query.db, query.family, fetch);
    Ok(false)
}

/// Takes messages of a queue that has some, and writes them. Returns whether there were any, or `None`
/// if there is no queue of this name. A queue that has none is not changed, so the command changes at
/// most one queue.
fn take_if_any(
    ctx: &mut Context,
    key: Name<'_>,
    fetch: &Fetch<'_>,
    delivery: &DeliveryReply,
) -> Result<Option<bool>, Failure> {
    let op = &Op::Fetch(Cow::Borrowed(fetch));
    let mut has_given = false;
    let can_serve = |queue: &Queue, now| queue.can_serve(fetch, now);
    let is_there = commit::run_if(ctx, key, op, can_serve, |reply, outcome| {
        if let Some((queue, Done::Fetched(given))) = outcome {
            if !given.is_empty() {
                has_given = true;
                delivery.write(reply, key, queue, given);
            }
        }
    })?;
    Ok(is_there.then_some(has_given))
}
