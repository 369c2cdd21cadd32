//! Serves the clients that are blocked in FETCH, MFETCH or NFETCH with BLOCK.
//!
//! `serve.rs` does so before the server sleeps, and `slots.rs` tells them of slots that have come or
//! gone.

pub mod serve;
pub mod slots;

use std::borrow::Cow;
use std::rc::Rc;

use crate::redis::blocking;
use crate::redis::wait::Wait;
use crate::redis::{Context, Name, OwnedName, Reply};
use dq_queue::op::Fetch;
use dq_queue::{Done, Op};

use super::commit::{can_begin, change, Begun};
use super::delivery_reply::DeliveryReply;
use super::waiting::blocked_fetch::{BlockedFetch, OfFamily};
use super::waiting::wait_list;
use super::waiting::Request;
use super::{clock, families, moving_slots, rights, wakeups};

/// The result of trying to serve a blocked client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Served {
    /// The client waits no longer: it has its messages, or is gone.
    Over,
    /// The client has lost its rights. It has got an error, and waits no longer.
    Refused,
    /// There are no messages for the client, nor for any other of its class.
    NothingForClass,
    /// There are no messages for any client at the moment.
    NothingForAny,
}

/// Blocks the client of this call until one of the queues has messages for it, for at most `ms`
/// milliseconds (0: no timeout). If the client cannot be blocked, replies that there are none.
pub fn block(
    ctx: &mut Context,
    keys: &[Name<'_>],
    ms: u64,
    fetch: Fetch<'_>,
    delivery: DeliveryReply,
) {
    let caller = (ctx.user_name(), delivery.call());
    let request = Request::new(fetch, delivery);
    let names = keys.iter().map(|key| key.bytes().into());
    let blocked = BlockedFetch::new(request, caller, ctx.db(), names);
    match blocking::block(ctx, keys, ms, Rc::clone(&blocked) as Rc<dyn Wait>) {
        Some(handle) => {
            blocked.join(handle);
            wakeups::ensure_deadlines(ctx);
            keys.iter().for_each(|key| schedule_refill(ctx, *key));
        }
        None => blocked.request.delivery.write_nothing(ctx.reply()),
    }
}

/// Blocks the client of this call until a queue of a family has messages for it that its user may
/// take, for at most `ms` milliseconds (0: no timeout). If the client cannot be blocked, replies
/// that there are none.
pub fn block_on_family(
    ctx: &mut Context,
    family: OfFamily,
    ms: u64,
    fetch: Fetch<'_>,
    delivery: DeliveryReply,
) {
    let request = Request::new(fetch, delivery);
    let blocked = BlockedFetch::of_family(request, ctx.db(), family);
    match blocking::block_without_keys(ctx, ms, Rc::clone(&blocked) as Rc<dyn Wait>) {
        Some(handle) => {
            blocked.join(handle);
            wakeups::ensure_deadlines(ctx);
        }
        None => blocked.request.delivery.write_nothing(ctx.reply()),
    }
}

/// Replies to all clients that wait for families, without a message.
pub fn answer_families() {
    for client in wait_list::all_of_families() {
        client.leave();
        if let Some(handle) = client.handle() {
            handle.answer(|reply| client.request.delivery.write_nothing(reply));
        }
    }
}

/// Checks for changes of the queues that clients which wait for families may take from: the slots
/// of this node, and the rights of their users. Called by the server's cron.
pub fn check_families(ctx: &Context) {
    if !wait_list::any_of_families() {
        return;
    }
    slots::check(ctx);
    for client in wait_list::first_of_families() {
        if let Some(family) = &client.family {
            let again = families::check_rights(ctx, client.db, &family.name, &family.user);
            again
                .iter()
                .for_each(|key| wait_list::schedule(client.db, key.bytes()));
        }
    }
}

/// Notes that a queue of a family was tried and cannot give now: to clients with a lease, nor, if
/// `no_ack` is set, to those with NOACK.
pub fn passed_over(ctx: &mut Context, key: Name<'_>, no_ack: bool) {
    families::cannot_give(ctx.db(), key.bytes(), no_ack);
    schedule_refill(ctx, key);
}

/// Schedules the timer for when the RATE of a queue allows the next delivery, now that a client
/// waits.
fn schedule_refill(ctx: &mut Context, key: Name<'_>) {
    let moment = clock::now();
    let wake = match ctx.open_read(key) {
        Ok(opened) => opened
            .get()
            .filter(|queue| queue.settings().rate.is_some())
            .and_then(|queue| Some(queue.server_time(queue.next_wake(queue.time(moment), true)?))),
        Err(_) => None,
    };
    if let Some(wake) = wake {
        wakeups::schedule(ctx, ctx.db(), key.bytes(), wake);
    }
}

/// Tries to serve a blocked client with messages of a queue. Writes nothing to the client of this
/// call.
fn try_serve(ctx: &mut Context, key: Name<'_>, blocked: &BlockedFetch) -> Served {
    let Some(handle) = blocked.handle() else {
        blocked.leave();
        return Served::Over;
    };
    let is_enabled = rights::is_enabled(ctx, &blocked.user);
    let Request { fetch, delivery } = &blocked.request;
    let op = &Op::Fetch(Cow::Borrowed(fetch));
    if moving_slots::check(ctx, key, Some(op)).is_err() {
        let again = clock::now().ms() + wakeups::NOT_OWNED_RETRY_MS;
        wakeups::schedule(ctx, ctx.db(), key.bytes(), again);
        return Served::NothingForAny;
    }
    let served = change(ctx, key, |slot| {
        let server = slot.moment(clock::now());
        let (ctx, Some(queue)) = slot.split() else {
            return Served::NothingForAny;
        };
        if !can_begin(queue, server) {
            // The slice sets its clock by the server's, and then schedules this wait list again.
            wakeups::schedule(ctx, ctx.db(), key.bytes(), server.ms());
            return Served::NothingForAny;
        }
        let moment = queue.follow(server);
        let now = queue.now(moment);
        if !queue.can_serve(fetch, now) {
            return Served::NothingForClass;
        }
        if !is_enabled || !blocked.may_be_served(key) {
            handle.answer(|reply| reply.error(rights::WITHDRAWN));
            blocked.leave();
            return Served::Refused;
        }
        if queue.has_overdue_expiry(now) {
            // The timer removes the expired messages, and then schedules this wait list again.
            wakeups::ensure(ctx, server.ms());
            return Served::NothingForAny;
        }
        let begun = Begun::at(moment);
        let served = slot.apply(begun, op, |_, queue, done| match done {
            Done::Fetched(given) if !given.is_empty() => {
                handle.answer(|reply| delivery.write(reply, key, queue, given));
                blocked.leave();
                Served::Over
            }
            _ => Served::NothingForClass,
        });
        served.ok().flatten().unwrap_or(Served::NothingForClass)
    });
    served.unwrap_or(Served::NothingForAny)
}

impl BlockedFetch {
    /// Whether the client's user may still make the client's call for this key.
    /// [`families::may_take`] checks the key of a client that waits for a family.
    fn may_be_served(&self, key: Name<'_>) -> bool {
        match &self.family {
            None => rights::may_wait(&self.user, self.call, key),
            Some(family) => {
                let family = OwnedName::new(&family.name);
                rights::may_wait(&self.user, self.call, family.name())
            }
        }
    }
}

impl Wait for BlockedFetch {
    fn appeared(&self, ctx: &Context, key: Name<'_>) {
        wait_list::schedule(ctx.db(), key.bytes());
    }

    fn timed_out(&self, reply: Reply<'_>) {
        self.leave();
        self.request.delivery.write_nothing(reply);
    }

    fn gone(&self) {
        self.leave();
    }
}
