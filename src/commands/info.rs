//! DQ.INFO: shows the counts, options and statistics of a queue.

use super::inspect;
use super::FIRST;
use crate::redis::spec::{Access, Arg, CommandSpec, Keys};
use crate::redis::{Args, CommandResult, Context, Reply};
use crate::server::message_reply::{field, text, time};
use crate::server::waiting::wait_list;
use crate::server::{clock, errors};
use dq_queue::message::state::State;
use dq_queue::settings::{Backoff, Breaker, OnDead, OnRetry, Rate};
use dq_queue::{Millis, Moment, Queue};

/// The description of the command, for the server and for COMMAND DOCS.
pub const SPEC: CommandSpec = CommandSpec {
    name: "DQ.INFO",
    handler: run,
    flags: "readonly",
    arity: 2,
    keys: Keys::First,
    access: Access::Read,
    summary: "Shows the counts, options and statistics of a queue.",
    complexity: "O(1)",
    since: FIRST,
    args: &[Arg::key()],
};

fn run(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let key = args.key()?;
    let moment = clock::now();
    let blocked_clients = wait_list::count(ctx.db(), key.bytes());
    let events_error = inspect::events_error(ctx, key)?;
    let opened = ctx.open_read(key)?;
    let Some(queue) = opened.get() else {
        return Err(errors::NO_SUCH_QUEUE.into());
    };
    let reply = opened.context().reply();
    reply.map(
        State::ALL.len()
            + CONTENT
            + OPTIONS
            + TOTALS
            + TIMES
            + BREAKERS
            + LAST
            + DEAD_LETTERS
            + EVENTS,
    );
    state_counts(reply, queue);
    let now = queue.time(moment);
    content(reply, queue, blocked_clients, moment);
    options(reply, queue);
    totals(reply, queue);
    times(reply, queue, now);
    breakers(reply, queue, now);
    word(
        reply,
        "sends",
        if queue.settings().closed { "OFF" } else { "ON" },
    );
    count(reply, "maxtimeouts", queue.settings().max_timeouts);
    field(reply, "oldest-due-age");
    time(reply, queue.oldest_due_age(now));
    count(reply, "errors", queue.settings().errors.into());
    word(reply, "fair", queue.settings().fair.name());
    count(reply, "parents", queue.held_by_children());
    count(reply, "parked", queue.parked());
    dead_letters(reply, queue);
    events(reply, queue, events_error);
    Ok(())
}

/// The fields that were added last: `sends`, `maxtimeouts`, `oldest-due-age`, `errors`, `fair`,
/// `parents` and `parked`.
const LAST: usize = 7;

/// The number of fields that [`content`] writes.
const CONTENT: usize = 8;

fn content(reply: Reply<'_>, queue: &Queue, blocked_clients: usize, moment: Moment) {
    let now = queue.time(moment);
    count(reply, "bytes", queue.bytes());
    count(reply, "groups", queue.groups_listed() as u64);
    count(reply, "consumers", queue.consumers().len() as u64);
    count(reply, "blocked-clients", blocked_clients as u64);
    field(reply, "paused");
    reply.boolean(queue.is_paused(now));
    count(reply, "now", now);
    count(reply, "clock-lead", queue.lead(moment));
    count(reply, "batches", queue.open_batches() as u64);
}

/// The number of fields that [`options`] writes.
const OPTIONS: usize = 19;

fn options(reply: Reply<'_>, queue: &Queue) {
    let settings = queue.settings();
    count(reply, "lease", settings.lease);
    field(reply, "retries");
    reply.integer(settings.retries);
    word(reply, "backoff", &backoff(settings.backoff));
    count(reply, "maxbackoff", settings.max_backoff);
    count(reply, "jitter", u64::from(settings.jitter));
    count(reply, "ttl", settings.ttl);
    count(reply, "retain", settings.retain);
    count(reply, "retaincount", settings.retain_count);
    count(reply, "deadretain", settings.dead_retain);
    count(reply, "deadcount", settings.dead_count);
    count(reply, "dedup", settings.dedup);
    count(reply, "maxlen", settings.max_len);
    count(reply, "maxbytes", settings.max_bytes);
    count(reply, "maxrunning", settings.max_running);
    field(reply, "rate");
    match settings.rate {
        Some(Rate { count, per }) => reply.bulk(format!("{count} PER {per}").as_bytes()),
        None => reply.null(),
    }
    count(reply, "groupconcurrency", settings.group_concurrency);
    let on_retry = match settings.on_retry {
        OnRetry::Block => "BLOCK",
        OnRetry::Skip => "SKIP",
    };
    word(reply, "onretry", on_retry);
    let on_dead = match settings.on_dead {
        OnDead::Continue => "CONTINUE",
        OnDead::Block => "BLOCK",
    };
    word(reply, "ondead", on_dead);
    let clock = match queue.clock() {
        dq_queue::settings::Clock::Server => "SERVER",
        dq_queue::settings::Clock::Manual(_) => "MANUAL",
    };
    word(reply, "clock", clock);
}

fn backoff(backoff: Backoff) -> String {
    match backoff {
        Backoff::Fixed(ms) => format!("FIXED {ms}"),
        Backoff::Linear(ms) => format!("LINEAR {ms}"),
        Backoff::Exp(ms) => format!("EXP {ms}"),
    }
}

/// The number of fields that [`totals`] writes.
const TOTALS: usize = 11;

fn totals(reply: Reply<'_>, queue: &Queue) {
    let totals = queue.totals();
    count(reply, "sent", totals.sent);
    count(reply, "duplicates", totals.duplicates);
    count(reply, "delivered", totals.delivered);
    count(reply, "redelivered", totals.redelivered);
    count(reply, "acked", totals.acked);
    count(reply, "nacked", totals.nacked);
    count(reply, "timeouts", totals.timeouts);
    count(reply, "deaths", totals.deaths);
    count(reply, "expired", totals.expired);
    count(reply, "cancellations", totals.cancellations);
    count(reply, "redriven", totals.redriven);
}

/// The number of fields that [`times`] writes.
const TIMES: usize = 5;

fn times(reply: Reply<'_>, queue: &Queue, now: Millis) {
    let lateness = queue.lateness();
    field(reply, "next-due-at");
    time(reply, queue.next_due_at(now));
    field(reply, "oldest-ready-age");
    time(reply, queue.oldest_ready_age(now));
    field(reply, "lateness-p50");
    time(reply, lateness.percentile(50));
    field(reply, "lateness-p99");
    time(reply, lateness.percentile(99));
    field(reply, "lateness-max");
    time(reply, lateness.max());
}

/// The number of fields that [`breakers`] writes.
const BREAKERS: usize = 2;

fn breakers(reply: Reply<'_>, queue: &Queue, now: Millis) {
    field(reply, "breaker");
    match queue.settings().breaker {
        Some(Breaker {
            failures,
            per,
            open,
            max,
        }) => {
            reply.bulk(format!("{failures} PER {per} OPEN {open} MAX {max}").as_bytes());
        }
        None => reply.null(),
    }
    count(reply, "breakers-open", queue.breakers_open(now));
}

/// The number of fields that [`dead_letters`] writes.
const DEAD_LETTERS: usize = 3;

fn dead_letters(reply: Reply<'_>, queue: &Queue) {
    field(reply, "deadto");
    match &queue.settings().dead_to {
        Some(dead_to) => {
            let mut text = dead_to.key.to_vec();
            for reason in dead_to.named() {
                text.push(b' ');
                text.extend_from_slice(reason.name().as_bytes());
            }
            reply.bulk(&text);
        }
        None => reply.null(),
    }
    let letters = queue.dead_letters();
    count(
        reply,
        "deadto-moved",
        letters.map_or(0, |letters| letters.moved),
    );
    field(reply, "deadto-error");
    match letters.and_then(|letters| letters.stays) {
        Some((stays, _)) => reply.bulk(stays.text().as_bytes()),
        None => reply.null(),
    }
}

/// The number of fields that [`events`] writes.
const EVENTS: usize = 3;

fn events(reply: Reply<'_>, queue: &Queue, error: Option<&str>) {
    let settings = queue.settings();
    field(reply, "events");
    text(reply, settings.events.as_deref());
    count(reply, "eventslen", settings.events_len);
    field(reply, "events-error");
    text(reply, error.map(str::as_bytes));
}

fn count(reply: Reply<'_>, name: &str, value: u64) {
    field(reply, name);
    reply.unsigned(value);
}

fn word(reply: Reply<'_>, name: &str, value: &str) {
    field(reply, name);
    reply.bulk(value.as_bytes());
}

/// Writes the number of messages in each state.
fn state_counts(reply: Reply<'_>, queue: &Queue) {
    for state in State::ALL {
        field(reply, state.name());
        reply.unsigned(queue.count(state));
    }
}
