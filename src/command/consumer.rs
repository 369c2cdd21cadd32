//! A consumer that waits for messages.

use std::borrow::Cow;
use std::rc::Rc;

use crate::command::execute::settle;
use crate::command::handover::Handover;
use crate::ffi::blocking::{self, Wait};
use crate::ffi::{Context, Name, Reply};
use crate::runtime::line::Class;
use crate::runtime::waiters::{self, Waiter};
use crate::runtime::{moment, wake};
use dq_queue::codec::record::Record;
use dq_queue::op::{Fetch, Receipts};
use dq_queue::{Done, Op};

/// What a consumer asked for, and how it is handed that.
pub struct Consumer {
    fetch: Fetch<'static>,
    handover: Handover,
}

/// What came of asking whether there is anything for a consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// It has been handed something, or is gone: it waits no more.
    Over,
    /// There is nothing for it, nor for any other of its class.
    Nothing,
    /// There is nothing for anybody, for the time being.
    Closed,
}

impl Consumer {
    /// Of which class of those who wait it is: by all that decides whether
    /// [`Queue::can_serve`](dq_queue::Queue::can_serve) it.
    pub fn class(&self) -> Class {
        Class {
            group: self.fetch.group.as_deref().map(Rc::from),
            no_ack: self.fetch.no_ack,
        }
    }
}

/// Blocks the client of this call, for `ms` milliseconds, until one of the
/// queues has something for it.
pub fn wait(ctx: &mut Context, keys: &[Name<'_>], ms: u64, fetch: Fetch<'_>, handover: Handover) {
    let consumer = Consumer {
        fetch: without_acks(fetch),
        handover,
    };
    let names = keys.iter().map(|key| key.bytes().into());
    let waiter = Waiter::new(consumer, ctx.db(), names);
    match blocking::block(ctx, keys, ms, Rc::clone(&waiter) as Rc<dyn Wait>) {
        Some(handle) => {
            waiter.join(handle);
            wake::ensure_deadlines(ctx);
            keys.iter().for_each(|key| look_when_it_refills(ctx, *key));
        }
        None => handover.give_nothing(ctx.reply()),
    }
}

/// The same without its acks, which are done, with memory of its own.
fn without_acks(fetch: Fetch<'_>) -> Fetch<'static> {
    let own = |name: Cow<'_, [u8]>| Cow::Owned(name.into_owned());
    Fetch {
        consumer: fetch.consumer.map(own),
        group: fetch.group.map(own),
        acks: Receipts::new(),
        count: fetch.count,
        lease: fetch.lease,
        per_group: fetch.per_group,
        max_bytes: fetch.max_bytes,
        no_ack: fetch.no_ack,
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

/// Hands a consumer that waits what a queue has for it. Write nothing of it to
/// the client of this call: it is another's.
pub fn ask(ctx: &mut Context, key: Name<'_>, waiter: &Waiter) -> Asked {
    let Some(handle) = waiter.handle() else {
        waiter.leave();
        return Asked::Over;
    };
    let Consumer { fetch, handover } = &waiter.consumer;
    let Ok(mut opened) = ctx.open_write(key) else {
        return Asked::Closed;
    };
    let (here, Some(queue)) = opened.split() else {
        return Asked::Closed;
    };
    let moment = moment::now();
    let now = queue.now(moment);
    if !queue.can_serve(fetch, now) {
        return Asked::Nothing;
    }
    if queue.has_overdue_expiry(now) {
        // What has expired is for the timer, which then has them asked again.
        wake::ensure(here, now);
        return Asked::Closed;
    }
    let op = &Op::Fetch(Cow::Borrowed(fetch));
    let Ok(Done::Fetched(given)) = queue.apply(op, moment) else {
        return Asked::Nothing;
    };
    let asked = match given.is_empty() {
        true => Asked::Nothing,
        false => {
            handle.answer(|reply| handover.give(reply, key, queue, &given));
            waiter.leave();
            Asked::Over
        }
    };
    let record = Record::of(moment, 0, None, op);
    let told = settle(here, key, queue, moment, &record);
    queue.take_back(Done::Fetched(given));
    drop(opened);
    told.tell(ctx, key);
    asked
}

impl Wait for Waiter {
    fn appeared(&self, ctx: &Context, key: Name<'_>) {
        waiters::note(ctx.db(), key.bytes());
    }

    fn timed_out(&self, reply: Reply<'_>) {
        self.leave();
        self.consumer.handover.give_nothing(reply);
    }

    fn gone(&self) {
        self.leave();
    }
}
