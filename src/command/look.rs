//! The verbs that only look: DQ.GET, LIST, PEEK, LEN, GROUPS, CONSUMERS,
//! EXPLAIN, SCHEDULES.

use crate::command::write::{self, field, text, time};
use crate::ffi::{Args, CommandResult, Context, Failure, Name, Reply};
use crate::runtime::moment;
use dq_queue::args::look;
use dq_queue::args::Words;
use dq_queue::queue::look::GroupView;
use dq_queue::schedule::Schedule;
use dq_queue::state::State;
use dq_queue::{Millis, Queue, Seq};

/// Opens a queue for looking at it now; `None` where there is none.
fn with_queue<R>(
    ctx: &mut Context,
    key: Name<'_>,
    look: impl FnOnce(Reply<'_>, Option<(&Queue, Millis)>) -> R,
) -> Result<R, Failure> {
    let moment = moment::now();
    let opened = ctx.open_read(key)?;
    let queue = opened.get().map(|queue| (queue, queue.now(moment)));
    Ok(look(opened.context().reply(), queue))
}

/// All that is known of a message.
pub fn get(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let key = args.key()?;
    let words = args.after_key();
    let id = look::message(Words::new(&words))?;
    with_queue(ctx, key, |reply, queue| {
        let view = queue.and_then(|(queue, now)| queue.view(queue.find(id)?, now));
        match view {
            Some(view) => write::message(reply, &view),
            None => reply.null(),
        }
    })
}

/// The messages of a state, a few at a time.
pub fn list(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let key = args.key()?;
    let words = args.after_key();
    let request = look::list(Words::new(&words))?;
    with_queue(ctx, key, |reply, queue| {
        let Some((queue, now)) = queue else {
            return write_page(reply, None::<u64>, 0);
        };
        let (next, seqs) = queue.list(request.listing, now);
        write_page(reply, next, seqs.len());
        for seq in seqs {
            write_seq(reply, queue, seq, now, request.ids);
        }
    })
}

fn write_seq(reply: Reply<'_>, queue: &Queue, seq: Seq, now: Millis, id_only: bool) {
    match queue.view(seq, now) {
        Some(view) if id_only => reply.bulk(view.id.as_bytes()),
        Some(view) => write::message(reply, &view),
        None => reply.null(),
    }
}

/// A page of a listing: the next cursor and the head of the array.
fn write_page(reply: Reply<'_>, next: Option<impl ToString>, len: usize) {
    reply.array(2);
    match next {
        Some(next) => reply.bulk(next.to_string().as_bytes()),
        None => reply.bulk(b"0"),
    }
    reply.array(len);
}

/// What FETCH would return next.
pub fn peek(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let key = args.key()?;
    let words = args.after_key();
    let count = look::peek(Words::new(&words))?;
    with_queue(ctx, key, |reply, queue| {
        let Some((queue, now)) = queue else {
            return reply.array(0);
        };
        let seqs = queue.peek(count, now);
        reply.array(seqs.len());
        for seq in seqs {
            write_seq(reply, queue, seq, now, false);
        }
    })
}

/// How many messages there are.
pub fn len(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let key = args.key()?;
    let words = args.after_key();
    let state = look::len(Words::new(&words))?;
    with_queue(ctx, key, |reply, queue| {
        let count = queue.map_or(0, |(queue, _)| match state {
            None => queue.live(),
            Some(state) => queue.count(state),
        });
        reply.unsigned(count);
    })
}

/// The groups, a few at a time.
pub fn groups(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let key = args.key()?;
    let words = args.after_key();
    let request = look::groups(Words::new(&words))?;
    with_queue(ctx, key, |reply, queue| {
        let Some((queue, now)) = queue else {
            return write_page(reply, None::<u64>, 0);
        };
        let (next, views) = queue.groups(request.cursor, request.count, request.state, now);
        write_page(reply, (next != 0).then_some(next), views.len());
        for view in views {
            write_group(reply, queue, &view);
        }
    })
}

fn write_group(reply: Reply<'_>, queue: &Queue, view: &GroupView<'_>) {
    reply.map(9);
    field(reply, "group");
    reply.bulk(&view.group.name);
    field(reply, "state");
    reply.bulk(view.state.name().as_bytes());
    field(reply, "waiting");
    reply.unsigned(view.waiting);
    field(reply, "running");
    reply.unsigned(u64::from(view.group.running));
    field(reply, "head");
    match view.head {
        Some((seq, message)) => reply.bulk(queue.id_of(seq, message).as_bytes()),
        None => reply.null(),
    }
    field(reply, "head-due-at");
    time(reply, view.head.map(|(_, message)| message.due_at()));
    field(reply, "lease-until");
    time(reply, view.lease_until);
    field(reply, "weight");
    reply.unsigned(view.group.weight());
    field(reply, "concurrency");
    reply.unsigned(view.concurrency);
}

/// The consumers.
pub fn consumers(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let key = args.key()?;
    with_queue(ctx, key, |reply, queue| {
        let consumers = queue.map_or(Vec::new(), |(queue, _)| queue.consumers());
        reply.array(consumers.len());
        for consumer in consumers {
            reply.map(6);
            field(reply, "name");
            reply.bulk(&consumer.name);
            field(reply, "running");
            reply.unsigned(consumer.running);
            field(reply, "last-seen");
            reply.unsigned(consumer.last_seen);
            field(reply, "delivered");
            reply.unsigned(consumer.delivered);
            field(reply, "acked");
            reply.unsigned(consumer.acked);
            field(reply, "nacked");
            reply.unsigned(consumer.nacked);
        }
    })
}

/// Why a message is where it is.
pub fn explain(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let key = args.key()?;
    let words = args.after_key();
    let id = look::message(Words::new(&words))?;
    with_queue(ctx, key, |reply, queue| {
        let Some(explanation) = queue.and_then(|(queue, now)| queue.explain(id, now)) else {
            return reply.null();
        };
        reply.map(4);
        field(reply, "code");
        reply.bulk(explanation.code.name().as_bytes());
        field(reply, "why");
        reply.bulk(explanation.why.as_bytes());
        field(reply, "until");
        time(reply, explanation.until);
        field(reply, "by");
        text(reply, explanation.by.as_deref());
    })
}

/// The schedules.
pub fn schedules(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let key = args.key()?;
    with_queue(ctx, key, |reply, queue| {
        let Some((queue, _)) = queue else {
            return reply.array(0);
        };
        let schedules = queue.schedules();
        reply.array(schedules.len());
        for (name, schedule) in schedules {
            write_schedule(reply, name, schedule);
        }
    })
}

fn write_schedule(reply: Reply<'_>, name: &[u8], schedule: &Schedule) {
    reply.map(5);
    field(reply, "name");
    reply.bulk(name);
    field(reply, "definition");
    reply.bulk(schedule.rule.definition().as_bytes());
    field(reply, "next-at");
    time(reply, schedule.next_at);
    field(reply, "last-at");
    time(reply, schedule.last_at);
    field(reply, "fired");
    reply.unsigned(schedule.fired);
}

/// The words of all states.
pub fn state_counts(reply: Reply<'_>, queue: &Queue) {
    for state in State::ALL {
        field(reply, state.name());
        reply.unsigned(queue.count(state));
    }
}
