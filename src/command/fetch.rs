//! DQ.FETCH and DQ.MFETCH: served at once, or when there is something.

use std::borrow::Cow;

use crate::command::execute::{self, settle, Missing, Wake};
use crate::command::parse::fetch::{self, FetchRequest};
use crate::command::parse::{self, Words};
use crate::command::write;
use crate::core::op::{Delivered, Fetch, Receipts};
use crate::core::{Done, Op, Queue};
use crate::ffi::blocking::{self, Wait};
use crate::ffi::{Args, CommandResult, Context, Name, Reply};
use crate::persist::record::Record;
use crate::runtime::waiters::{self, Waiting};
use crate::runtime::{bound, moment, wake};

/// Delivers messages of one queue.
pub fn fetch(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let key = parse::key(args)?;
    let request = fetch::fetch(Words::after_key(args))?;
    let FetchRequest {
        fetch,
        block,
        bind,
        with_meta,
    } = request;
    let shape = Shape {
        with_meta,
        with_key: false,
    };
    let tie = bind.then(|| (ctx.client_id(), ctx.db()));
    let op = Op::Fetch(fetch);
    let mut served = false;
    execute::run(ctx, key, &op, Missing::Nothing, |reply, outcome| {
        if let Some((queue, Done::Fetched(given))) = outcome {
            if !given.is_empty() {
                served = true;
                shape.write(reply, key, queue, given);
                tie_leases(tie, key, queue, given);
            }
        }
    })?;
    if !served {
        match block {
            Some(ms) if !ctx.deny_blocking() => wait(ctx, &[key], ms, op, shape, bind),
            _ => shape.write_nothing(ctx.reply()),
        }
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
    let shape = Shape {
        with_meta,
        with_key: true,
    };
    let tie = bind.then(|| (ctx.client_id(), ctx.db()));
    let op = Op::Fetch(fetch);
    for key in &keys {
        let moment = moment::now();
        let Op::Fetch(fetch) = &op else { break };
        let opened = ctx.open_read(*key)?;
        // A queue that has nothing is not touched: one command, one record.
        let can_serve = opened
            .get()
            .is_some_and(|queue| queue.can_serve(fetch, queue.now(moment)));
        drop(opened);
        if !can_serve {
            continue;
        }
        let mut served = false;
        execute::run(ctx, *key, &op, Missing::Nothing, |reply, outcome| {
            if let Some((queue, Done::Fetched(given))) = outcome {
                if !given.is_empty() {
                    served = true;
                    shape.write(reply, *key, queue, given);
                    tie_leases(tie, *key, queue, given);
                }
            }
        })?;
        if served {
            return Ok(());
        }
    }
    match block {
        Some(ms) if !ctx.deny_blocking() => wait(ctx, &keys, ms, op, shape, bind),
        _ => shape.write_nothing(ctx.reply()),
    }
    Ok(())
}

/// Blocks the client until one of the queues can serve it.
fn wait(ctx: &mut Context, keys: &[Name<'_>], ms: u64, op: Op<'_>, shape: Shape, bind: bool) {
    let Op::Fetch(fetch) = op else {
        return;
    };
    let waiter = FetchWaiter {
        fetch: fetch.without_acks(),
        shape,
        tie: bind.then(|| (ctx.client_id(), ctx.db())),
        _waiting: Waiting::new(ctx.db(), keys.iter().map(|key| key.bytes().into())),
    };
    match blocking::block(ctx, keys, ms, waiter) {
        Ok(_) => keys.iter().for_each(|key| look_when_it_refills(ctx, *key)),
        Err(waiter) => waiter.shape.write_nothing(ctx.reply()),
    }
}

/// Somebody waits now: a limit that refills is a time to look at the queue.
fn look_when_it_refills(ctx: &mut Context, key: Name<'_>) {
    let moment = moment::now();
    let wake = match ctx.open_read(key) {
        Ok(opened) => opened
            .get()
            .filter(|queue| queue.settings().rate.is_some())
            .and_then(|queue| queue.next_wake(queue.now(moment), true)),
        Err(_) => None,
    };
    if let Some(wake) = wake {
        wake::note(ctx, ctx.db(), key.bytes(), wake);
    }
}

/// Ties the leases of deliveries to a connection (client, database).
fn tie_leases(tie: Option<(u64, i32)>, key: Name<'_>, queue: &Queue, given: &[Delivered]) {
    if let Some((client, db)) = tie {
        let receipts = given.iter().map(|delivered| delivered.receipt);
        bound::bind(client, db, key.bytes(), receipts, |receipt| {
            queue.is_running(receipt)
        });
    }
}

/// How deliveries are written.
#[derive(Debug, Clone, Copy)]
struct Shape {
    with_meta: bool,
    with_key: bool,
}

impl Shape {
    fn write(self, reply: Reply<'_>, key: Name<'_>, queue: &Queue, given: &[Delivered]) {
        if self.with_key {
            reply.array(2);
            reply.bulk(key.bytes());
        }
        reply.array(given.len());
        for delivered in given {
            write::delivery(reply, queue, delivered, self.with_meta);
        }
    }

    fn write_nothing(self, reply: Reply<'_>) {
        match self.with_key {
            true => reply.null_array(),
            false => reply.array(0),
        }
    }
}

/// A client that waits for messages.
struct FetchWaiter {
    fetch: Fetch<'static>,
    shape: Shape,
    /// The connection that its leases are to be tied to, and the database.
    tie: Option<(u64, i32)>,
    _waiting: Waiting,
}

impl Wait for FetchWaiter {
    fn ready(&self, ctx: &mut Context, key: Name<'_>) -> bool {
        if !ctx.may_act() {
            // A pause or failover is on: the timer signals again afterwards.
            wake::note(ctx, ctx.db(), key.bytes(), moment::now().ms());
            return false;
        }
        let any_group = self.fetch.group.is_none();
        if any_group && waiters::nothing_for(ctx.db(), key.bytes()) {
            return false;
        }
        let moment = moment::now();
        let Ok(mut opened) = ctx.open_write(key) else {
            return false;
        };
        let (here, Some(queue)) = opened.split() else {
            return false;
        };
        let now = queue.now(moment);
        if !queue.can_serve(&self.fetch, now) {
            if any_group {
                waiters::note_nothing_for(here.db(), key.bytes());
            }
            return false;
        }
        if queue.has_overdue_expiry(now) {
            // What has expired is for the timer, which then signals again.
            wake::ensure(here, now);
            return false;
        }
        let op = Op::Fetch(self.fetch.clone());
        let Ok(Done::Fetched(given)) = queue.apply(&op, moment) else {
            return false;
        };
        if given.is_empty() {
            return false;
        }
        self.shape.write(here.reply(), key, queue, &given);
        tie_leases(self.tie, key, queue, &given);
        let record = Record::of(moment, 0, None, &op);
        let told = settle(here, key, queue, moment, &record, Wake::Nobody);
        queue.take_back(Done::Fetched(given));
        drop(opened);
        told.tell(ctx, key);
        true
    }

    fn timed_out(&self, reply: Reply<'_>) {
        self.shape.write_nothing(reply);
    }
}

impl Fetch<'_> {
    /// The same without its acks, which are done, with memory of its own.
    fn without_acks(self) -> Fetch<'static> {
        let own = |name: Cow<'_, [u8]>| Cow::Owned(name.into_owned());
        Fetch {
            consumer: self.consumer.map(own),
            group: self.group.map(own),
            acks: Receipts::new(),
            count: self.count,
            lease: self.lease,
            per_group: self.per_group,
            max_bytes: self.max_bytes,
            no_ack: self.no_ack,
        }
    }
}
