//! The aftermath of a change, once its key is closed: changes in other keys, events, and answers
//! to clients that wait for the end of a message.

use std::ffi::CStr;

use super::event_stream::Entries;
use super::keyspace::{Keys, Others};
use crate::redis::{Context, Name};
use crate::server::blocked_wait;
use dq_queue::keyspace::settle;
use dq_queue::op::{Ending, Happened, Told};
use dq_queue::queue::ends::Owed;
use dq_queue::Queue;

/// The messages that are to be published once the keys of a change are closed.
pub struct Aftermath<'c> {
    key: Name<'c>,
    pub(super) happened: Happened,
    pub(super) rest: Option<Box<Rest>>,
}

/// The work that a change leaves besides keyspace events. Most changes leave none.
#[derive(Default)]
pub(super) struct Rest {
    /// The ends of messages that clients wait for.
    pub(super) ended: Vec<Ending>,
    /// The entries of the event stream.
    entries: Option<Entries>,
    /// The work that the queue owes to other keys.
    pub(super) owed: Option<Owed>,
    /// Whether the collecting of log entries began for it.
    pub(super) began_to_collect: bool,
    /// The changes in other keys that follow from it.
    pub(super) others: Others,
}

impl Rest {
    /// Adds the consequences of one change of a queue.
    #[cold]
    pub(super) fn add(&mut self, queue: &Queue, told: Option<Told>, owed: Option<Owed>) {
        if let Some(told) = told {
            self.ended.extend(told.endings);
            let entries = Entries::of(queue, told.transitions);
            match (&mut self.entries, entries) {
                (Some(earlier), Some(entries)) => earlier.extend(entries),
                (earlier, entries) => *earlier = earlier.take().or(entries),
            }
        }
        self.owed = self.owed.take().or(owed);
    }

    /// Whether other keys will be changed.
    pub(super) fn concerns_other_keys(&self) -> bool {
        self.entries.is_some() || self.owed.is_some()
    }
}

impl<'c> Aftermath<'c> {
    /// The work that follows from a change of the queue in this key.
    pub(super) fn of(key: Name<'c>, happened: Happened, rest: Option<Box<Rest>>) -> Aftermath<'c> {
        Aftermath {
            key,
            happened,
            rest,
        }
    }

    /// Applies the consequences of the change to other keys, in the same replicated command. Call
    /// it before [`Aftermath::publish`].
    #[inline]
    pub fn tell(&mut self, ctx: &mut Context) {
        if self.rest.is_some() {
            self.append(ctx);
            self.deliver(ctx);
        }
    }

    /// Adds to the event stream. A replay does so between the changes of two queues.
    pub fn append(&mut self, ctx: &mut Context) {
        let Some(rest) = &mut self.rest else {
            return;
        };
        let entries = rest.entries.take();
        let appended = entries.and_then(|entries| entries.append(ctx, self.key));
        rest.others.streams.extend(appended);
    }

    /// Settles what the queue owes to other keys, and replicates the collected log entries.
    pub fn deliver(&mut self, ctx: &mut Context) {
        let Some(rest) = &mut self.rest else {
            return;
        };
        if let Some(owed) = rest.owed.take() {
            let others = &mut rest.others;
            settle(&mut Keys { ctx, others }, self.key.bytes(), owed);
        }
        if std::mem::take(&mut rest.began_to_collect) {
            ctx.replicate_collected();
        }
    }

    /// Publishes events and answers clients that wait for the end of a message.
    #[inline]
    pub fn publish(self, ctx: &mut Context) {
        if !self.happened.is_empty() && ctx.wants_events() {
            notify(ctx, self.key, self.happened);
        }
        if let Some(rest) = self.rest {
            publish_rest(ctx, self.key, *rest);
        }
    }
}

#[cold]
fn publish_rest(ctx: &mut Context, key: Name<'_>, rest: Rest) {
    publish_others(ctx, &rest.others);
    for ending in rest.ended {
        blocked_wait::answer(ctx, key, ending);
    }
}

fn publish_others(ctx: &mut Context, others: &Others) {
    for (key, happened) in &others.queues {
        if ctx.wants_events() {
            notify(ctx, key.name(), *happened);
        }
    }
    for (key, ending) in &others.ended {
        blocked_wait::answer(ctx, key.name(), ending.clone());
    }
    for appended in &others.streams {
        let stream = appended.stream.name();
        for _ in 0..appended.added {
            ctx.notify_stream_event(c"xadd", stream);
        }
        if appended.trimmed {
            ctx.notify_stream_event(c"xtrim", stream);
        }
    }
}

fn notify(ctx: &mut Context, key: Name<'_>, happened: Happened) {
    for (kind, name) in EVENTS {
        if happened.has(kind) {
            ctx.notify_event(name, key);
        }
    }
}

/// The events in the order in which they are published: a cause comes before its effects.
const EVENTS: [(Happened, &CStr); 10] = [
    (Happened::SENT, c"dq.sent"),
    (Happened::ACKED, c"dq.acked"),
    (Happened::NACKED, c"dq.nacked"),
    (Happened::NOTED, c"dq.noted"),
    (Happened::TIMEOUT, c"dq.timeout"),
    (Happened::DEAD, c"dq.dead"),
    (Happened::CANCELLED, c"dq.cancelled"),
    (Happened::BREAKER, c"dq.breaker"),
    (Happened::READY, c"dq.ready"),
    (Happened::DELIVERED, c"dq.delivered"),
];
