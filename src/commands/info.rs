//! DQ.INFO: shows the counts, options and statistics of a queue.

use super::inspect;
use crate::redis::spec::{Access, Arg, CommandSpec, Keys};
use crate::redis::{Args, CommandResult, Context, Reply};
use crate::server::waiting::wait_list;
use crate::server::{clock, errors, moving_slots};
use dq_queue::message::state::State;
use dq_queue::settings::{Backoff, Breaker, OnDead, Rate};
use dq_queue::{Millis, Moment, Queue};

pub(super) const SPEC: CommandSpec = CommandSpec {
    name: "DQ.INFO",
    handler: run,
    flags: "readonly",
    keys: Keys::First,
    access: Access::Read,
    summary: "Shows the counts, options and statistics of a queue.",
    complexity: "O(1)",
    args: &[Arg::key()],
};

fn run(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let key = args.key()?;
    let moment = clock::now();
    let blocked_clients = wait_list::count(ctx.db(), key.bytes());
    let events_error = inspect::events_error(ctx, key)?;
    let waits_for_slot = ctx.is_primary() && moving_slots::waits(ctx, key);
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
            + EVENTS
            + DETACHED
            + SLOT
            + COMPRESS,
    );
    state_counts(reply, queue);
    let now = queue.time(moment);
    content(reply, queue, blocked_clients, moment);
    options(reply, queue);
    totals(reply, queue);
    times(reply, queue, now);
    breakers(reply, queue, now);
    reply.field("sends", if queue.settings().closed { "OFF" } else { "ON" });
    reply.field("maxtimeouts", queue.settings().max_timeouts);
    reply.field("oldest-due-age", queue.oldest_due_age(now));
    reply.field("errors", u64::from(queue.settings().errors));
    reply.field("fair", queue.settings().fair.name());
    reply.field("parents", queue.held_by_children());
    reply.field("parked", queue.parked());
    dead_letters(reply, queue);
    events(reply, queue, events_error);
    detached(reply, queue);
    reply.field("waits-for-slot", u64::from(waits_for_slot));
    compress(reply, queue);
    Ok(())
}

/// The number of fields that [`compress`] writes.
const COMPRESS: usize = 3;

fn compress(reply: Reply<'_>, queue: &Queue) {
    let sums = queue.packing_sums();
    reply.field(
        "compress",
        if queue.settings().compress {
            "ON"
        } else {
            "OFF"
        },
    );
    reply.field("packed-bytes", sums.before);
    reply.field("packed-memory", sums.after + sums.dictionaries);
}

/// The number of fields that a slot on its way adds: `waits-for-slot`.
const SLOT: usize = 1;

/// The fields that were added last: `sends`, `maxtimeouts`, `oldest-due-age`, `errors`, `fair`,
/// `parents` and `parked`.
const LAST: usize = 7;

/// The number of fields that [`content`] writes.
const CONTENT: usize = 8;

fn content(reply: Reply<'_>, queue: &Queue, blocked_clients: usize, moment: Moment) {
    let now = queue.time(moment);
    reply.field("bytes", queue.bytes());
    reply.field("groups", queue.groups_listed() as u64);
    reply.field("consumers", queue.consumers().len() as u64);
    reply.field("blocked-clients", blocked_clients as u64);
    reply.field("paused", queue.is_paused(now));
    reply.field("now", now);
    reply.field("clock-lead", queue.lead(moment));
    reply.field("batches", queue.open_batches() as u64);
}

/// The number of fields that [`options`] writes.
const OPTIONS: usize = 19;

fn options(reply: Reply<'_>, queue: &Queue) {
    let settings = queue.settings();
    reply.field("lease", settings.lease);
    reply.field("retries", settings.retries);
    reply.field("backoff", &backoff(settings.backoff));
    reply.field("maxbackoff", settings.max_backoff);
    reply.field("jitter", u64::from(settings.jitter));
    reply.field("ttl", settings.ttl);
    reply.field("retain", settings.retain);
    reply.field("retaincount", settings.retain_count);
    reply.field("deadretain", settings.dead_retain);
    reply.field("deadcount", settings.dead_count);
    reply.field("dedup", settings.dedup);
    reply.field("maxlen", settings.max_len);
    reply.field("maxbytes", settings.max_bytes);
    reply.field("maxrunning", settings.max_running);
    let rate = settings.rate;
    let rate = rate.map(|Rate { count, per }| format!("{count} PER {per}"));
    reply.field("rate", rate.as_deref());
    reply.field("groupconcurrency", settings.group_concurrency);
    reply.field("onretry", settings.on_retry.name());
    let on_dead = match settings.on_dead {
        OnDead::Continue => "CONTINUE",
        OnDead::Block => "BLOCK",
    };
    reply.field("ondead", on_dead);
    let clock = match queue.clock() {
        dq_queue::settings::Clock::Server => "SERVER",
        dq_queue::settings::Clock::Manual(_) => "MANUAL",
    };
    reply.field("clock", clock);
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
    reply.field("sent", totals.sent.get());
    reply.field("duplicates", totals.duplicates.get());
    reply.field("delivered", totals.delivered.get());
    reply.field("redelivered", totals.redelivered.get());
    reply.field("acked", totals.acked.get());
    reply.field("nacked", totals.nacked.get());
    reply.field("timeouts", totals.timeouts.get());
    reply.field("deaths", totals.deaths.get());
    reply.field("expired", totals.expired.get());
    reply.field("cancellations", totals.cancellations.get());
    reply.field("redriven", totals.redriven.get());
}

/// The number of fields that [`times`] writes.
const TIMES: usize = 5;

fn times(reply: Reply<'_>, queue: &Queue, now: Millis) {
    let lateness = queue.lateness();
    reply.field("next-due-at", queue.next_due_at(now));
    reply.field("oldest-ready-age", queue.oldest_ready_age(now));
    reply.field("lateness-p50", lateness.percentile(50));
    reply.field("lateness-p99", lateness.percentile(99));
    reply.field("lateness-max", lateness.max());
}

/// The number of fields that [`breakers`] writes.
const BREAKERS: usize = 2;

fn breakers(reply: Reply<'_>, queue: &Queue, now: Millis) {
    let breaker = queue.settings().breaker.map(|breaker| {
        let Breaker {
            failures,
            per,
            open,
            max,
        } = breaker;
        format!("{failures} PER {per} OPEN {open} MAX {max}")
    });
    reply.field("breaker", breaker.as_deref());
    reply.field("breakers-open", queue.breakers_open(now));
}

/// The number of fields that [`dead_letters`] writes.
const DEAD_LETTERS: usize = 3;

fn dead_letters(reply: Reply<'_>, queue: &Queue) {
    let dead_to = queue.settings().dead_to.as_ref().map(|dead_to| {
        let reasons = dead_to.named().map(|reason| reason.name().as_bytes());
        let words: Vec<_> = std::iter::once(&*dead_to.key).chain(reasons).collect();
        words.join(&b' ')
    });
    reply.field("deadto", dead_to.as_deref());
    let letters = queue.dead_letters();
    reply.field(
        "deadto-moved",
        letters.map_or(0, |letters| letters.moved.get()),
    );
    let stays = letters.and_then(|letters| letters.stays);
    reply.field("deadto-error", stays.map(|(stays, _)| stays.text()));
}

/// The number of fields that [`events`] writes.
const EVENTS: usize = 3;

fn events(reply: Reply<'_>, queue: &Queue, error: Option<&str>) {
    let settings = queue.settings();
    reply.field("events", settings.events.as_deref());
    reply.field("eventslen", settings.events_len);
    reply.field("events-error", error);
}

/// The number of fields that [`detached`] writes.
const DETACHED: usize = 1;

fn detached(reply: Reply<'_>, queue: &Queue) {
    reply.name("detached");
    let Some(detached) = queue.detached() else {
        return reply.null();
    };
    let words: Vec<_> = detached.ties().words().collect();
    reply.array(words.len());
    words.iter().for_each(|word| reply.bulk(word.as_bytes()));
}

/// Writes the number of messages in each state.
fn state_counts(reply: Reply<'_>, queue: &Queue) {
    for state in State::ALL {
        reply.field(state.name(), queue.count(state));
    }
}
