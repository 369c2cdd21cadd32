//! DQ.CREATE: creates a queue. With NX it replies with null if the queue exists.

use super::options::{
    BACKOFF, BREAKER, COMPRESS, DEAD_TO, ERRORS, EVENTS, FAIR, LEASE, MAX_TIMEOUTS, RATE, RETRIES,
    SENDS, TTL,
};
use crate::redis::spec::{Access, Arg, CommandSpec, Keys, Positions};
use crate::redis::{Args, CommandResult, Context, Name};
use crate::server::commit::{self, change, event_stream};
use crate::server::{clock, errors};
use dq_queue::args::{self, Words};
use dq_queue::family::slot_of_key;
use dq_queue::quote::quote;
use dq_queue::settings::Changes;
use dq_queue::{Error, Op};

pub(super) const SPEC: CommandSpec = CommandSpec {
    name: "DQ.CREATE",
    handler: run,
    flags: "write deny-oom fast getkeys-api",
    keys: Keys::FirstAnd(other_keys),
    access: Access::Insert,
    summary: "Makes a queue with options of its own.",
    complexity: "O(1)",
    args: &[
        Arg::key(),
        Arg::word("nx", "NX").optional(),
        LEASE,
        RETRIES,
        BACKOFF,
        number("maxbackoff", "MAXBACKOFF"),
        number("jitter", "JITTER"),
        TTL,
        number("retain", "RETAIN"),
        number("retaincount", "RETAINCOUNT"),
        number("deadretain", "DEADRETAIN"),
        number("deadcount", "DEADCOUNT"),
        number("dedup", "DEDUP"),
        number("maxlen", "MAXLEN"),
        number("maxbytes", "MAXBYTES"),
        number("maxrunning", "MAXRUNNING"),
        RATE,
        number("groupconcurrency", "GROUPCONCURRENCY"),
        ON_RETRY,
        ON_DEAD,
        BREAKER,
        SENDS,
        FAIR,
        COMPRESS,
        MAX_TIMEOUTS,
        ERRORS,
        DEAD_TO,
        EVENTS,
        number("eventslen", "EVENTSLEN"),
        CLOCK,
    ],
};

const fn number(name: &'static str, token: &'static str) -> Arg {
    Arg::integer(name).after(token).optional()
}

const ON_RETRY: Arg = Arg::one_of(
    "onretry",
    &[
        Arg::word("block", "BLOCK"),
        Arg::word("skip", "SKIP"),
        Arg::word("alone", "ALONE"),
    ],
)
.after("ONRETRY")
.optional();

const ON_DEAD: Arg = Arg::one_of(
    "ondead",
    &[
        Arg::word("continue", "CONTINUE"),
        Arg::word("block", "BLOCK"),
    ],
)
.after("ONDEAD")
.optional();

const CLOCK: Arg = Arg::one_of(
    "clock",
    &[
        Arg::word("server", "SERVER"),
        Arg::time("start").after("MANUAL"),
    ],
)
.after("CLOCK")
.optional();

/// The positions of the other keys that the options of a queue name, among the arguments after the
/// name of the command.
pub fn other_keys(words: &[&[u8]]) -> Positions {
    let options = words.get(1..).unwrap_or_default();
    let keys = args::create::other_keys(Words::new(options));
    let keys = keys.into_iter();
    keys.map(|position| (position + 1, Access::Insert))
        .collect()
}

/// Checks the other keys that the options of a queue name.
///
/// Errors: a key is that of the queue itself, or in another slot of the cluster, or EVENTS names a
/// stream of another program.
pub fn check_keys(ctx: &mut Context, key: Name<'_>, changes: &Changes) -> CommandResult {
    let dead_to = changes.dead_to.iter().flatten();
    let dead_to = dead_to.map(|to| ("DEADTO", &*to.key));
    let events = changes.events.iter().flatten();
    for (what, other) in dead_to.chain(events.map(|stream| ("EVENTS", &**stream))) {
        if other == key.bytes() {
            return Err(format!("ERR {what} must name another key than that of the queue").into());
        }
        if ctx.is_in_cluster() && slot_of_key(other) != slot_of_key(key.bytes()) {
            return Err(
                format!("CROSSSLOT the key of {what} must be in the slot of the queue").into(),
            );
        }
    }
    let mut events = changes.events.iter().flatten();
    match events.find(|stream| event_stream::is_of_others(ctx, stream)) {
        None => Ok(()),
        Some(stream) => Err(format!(
            "ERR EVENTS must name a stream of events: the newest entry of {} is none of a queue",
            quote(stream)
        )
        .into()),
    }
}

fn run(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let key = args.key()?;
    let words = args.after_key();
    let new = args::create::create(Words::new(&words))?;
    // A queue that NX leaves as it is needs no check: others may have written to the stream since.
    if !(new.if_missing && ctx.holds_queue(key)) {
        check_keys(ctx, key, &new.changes)?;
    }
    change(ctx, key, |slot| {
        if let (ctx, Some(_)) = slot.split() {
            if !new.if_missing {
                return Err(errors::reply_for(&Error::Exists));
            }
            ctx.reply().null();
            return Ok(());
        }
        let moment = clock::now();
        let creation = commit::creation(&new.changes, new.clock);
        let made = slot.apply_to_new(creation, &Op::Tick, moment, |ctx, _, _| {
            ctx.reply().status(c"OK");
        });
        made.map_err(|error| errors::reply_for(&error))
    })?
}
