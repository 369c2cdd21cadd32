//! Limits of the values that clients give.
//!
//! Commands, log entries and snapshots check the same limits, so that whatever
//! a command accepts can be loaded again, and nothing else can.

use std::fmt;
use std::num::NonZeroU64;

use crate::message::after::Batching;
use crate::message::errors::FailedAttempt;
use crate::message::kin::Parent;
use crate::message::limited::{Limited, MAX_LIMITS};
use crate::message::Choices;
use crate::schedule::Limits;
use crate::settings::{Backoff, Breaker, Changes, Rate};
use crate::{Millis, MAX_EXACT};

/// The longest id, group name, type or consumer name, in bytes; the shortest is
/// 1.
pub const MAX_NAME: usize = 1024;
/// The longest name of a schedule, in bytes; the shortest is 1. It leaves room
/// for the id made of it, `name@unix-ms`, which is at most [`MAX_NAME`] bytes
/// long.
pub const MAX_SCHEDULE_NAME: usize = 1000;
/// The longest pattern of a search, in bytes.
pub const MAX_GLOB: usize = 1024;
/// The largest COUNT, and so the most messages of one batch; the smallest is 1.
pub const MAX_COUNT: u64 = 10_000;
/// The longest note of a message, in bytes.
pub const MAX_NOTE: usize = 64 * 1024;
/// The longest error text that is kept, in bytes. The end of a longer one is cut off.
pub const MAX_ERROR: usize = 64 * 1024;
/// The most failed attempts that a message keeps (ERRORS).
pub const MAX_ERRORS: u8 = 100;
/// The longest text of a failed attempt that is kept, in bytes. The end of a longer one is cut off.
pub const MAX_KEPT_ERROR: usize = 4 * 1024;
/// The longest result that is taken while the server has no memory left, in bytes.
pub const MAX_RESULT_WHEN_FULL: usize = 64 * 1024;
/// The greatest number of due events in one log entry: no slice and no command takes
/// more.
pub const MAX_STEPS: u64 = 100_000;
/// The longest TOKEN, in bytes; the shortest is 1.
pub const MAX_TOKEN: usize = 64;
/// The largest COUNT of a FETCH with a TOKEN.
pub const MAX_TOKEN_COUNT: u64 = 1_000;
/// The most messages of a group that one FETCH takes with ONRETRY ALONE.
pub const MAX_ALONE: u64 = 100;
/// The largest JITTER, in percent.
pub const MAX_JITTER: u8 = 100;

/// The largest number of failures that open a breaker; the smallest is 1.
pub const MAX_FAILURES: u64 = 1000;

/// The error in a value of a client, a log entry or a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Invalid(pub &'static str);

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl From<Invalid> for String {
    fn from(invalid: Invalid) -> String {
        invalid.0.to_owned()
    }
}

/// Returns `Ok` if `good` holds, else the error `what`.
pub fn ensure(good: bool, what: &'static str) -> Result<(), Invalid> {
    match good {
        true => Ok(()),
        false => Err(Invalid(what)),
    }
}

/// Checks the length of an id, a group name, a type or a consumer name.
pub fn name(name: &[u8]) -> Result<(), Invalid> {
    ensure(
        (1..=MAX_NAME).contains(&name.len()),
        "a name must be 1 to 1024 bytes long",
    )
}

/// Checks the length of a note.
pub fn note(note: &[u8]) -> Result<(), Invalid> {
    ensure(
        note.len() <= MAX_NOTE,
        "a note must be at most 65536 bytes long",
    )
}

/// Checks the length of a TOKEN.
pub fn token(token: &[u8]) -> Result<(), Invalid> {
    ensure(
        (1..=MAX_TOKEN).contains(&token.len()),
        "a token must be 1 to 64 bytes long",
    )
}

/// Checks the length of the name of a schedule.
pub fn schedule_name(name: &[u8]) -> Result<(), Invalid> {
    ensure(
        (1..=MAX_SCHEDULE_NAME).contains(&name.len()),
        "the name of a schedule must be 1 to 1000 bytes long",
    )
}

/// Checks a time, a duration, a receipt or a limit: 0 to 2^53-1.
pub fn exact(n: u64) -> Result<(), Invalid> {
    ensure(n <= MAX_EXACT, "a number must be at most 2^53-1")
}

/// Checks a number that must be 1 to 2^53-1.
pub fn positive(n: u64) -> Result<(), Invalid> {
    ensure((1..=MAX_EXACT).contains(&n), "a number must be 1 to 2^53-1")
}

/// Checks a value of RETRIES: -1 to 2^53-1.
pub fn retries(n: i64) -> Result<(), Invalid> {
    ensure(
        (-1..=MAX_EXACT as i64).contains(&n),
        "RETRIES must be -1 to 2^53-1",
    )
}

/// Checks a value of ERRORS: 0 to 100.
pub fn errors(n: u8) -> Result<(), Invalid> {
    ensure(n <= MAX_ERRORS, "ERRORS must be at most 100")
}

/// Checks a failed attempt that a message keeps.
pub fn failed_attempt(failed: &FailedAttempt) -> Result<(), Invalid> {
    exact(failed.at)?;
    failed.consumer.as_deref().map_or(Ok(()), name)?;
    ensure(
        failed.text.len() <= MAX_KEPT_ERROR,
        "the text of a failed attempt must be at most 4096 bytes long",
    )
}

/// Checks the length of a BACKOFF: 0 to 2^53-1 ms.
pub fn backoff(backoff: Backoff) -> Result<(), Invalid> {
    let (Backoff::Fixed(ms) | Backoff::Linear(ms) | Backoff::Exp(ms)) = backoff;
    exact(ms)
}

/// Checks a RATE: its count and its window are 1 to 2^53-1.
pub fn rate(rate: Rate) -> Result<(), Invalid> {
    positive(rate.count).and_then(|()| positive(rate.per))
}

/// Checks a BREAKER: 1 to 1,000 failures, times of 1 to 2^53-1 ms, and MAX is not
/// below OPEN.
pub fn breaker(breaker: Breaker) -> Result<(), Invalid> {
    ensure(
        (1..=MAX_FAILURES).contains(&breaker.failures),
        "the failures of a BREAKER must be 1 to 1000",
    )?;
    [breaker.per, breaker.open, breaker.max]
        .into_iter()
        .try_for_each(positive)?;
    ensure(
        breaker.open <= breaker.max,
        "MAX of a BREAKER must not be below OPEN",
    )
}

/// Checks the options of a queue that are given.
pub fn changes(changes: &Changes) -> Result<(), Invalid> {
    let some = |n: Option<Millis>| n.map_or(Ok(()), positive);
    some(changes.lease)?;
    some(changes.group_concurrency)?;
    some(changes.events_len)?;
    let numbers = [
        changes.max_backoff,
        changes.ttl,
        changes.retain,
        changes.retain_count,
        changes.dead_retain,
        changes.dead_count,
        changes.dedup,
        changes.max_len,
        changes.max_bytes,
        changes.max_running,
        changes.max_timeouts,
    ];
    numbers.into_iter().flatten().try_for_each(exact)?;
    changes.errors.map_or(Ok(()), errors)?;
    changes.retries.map_or(Ok(()), retries)?;
    changes.backoff.map_or(Ok(()), backoff)?;
    changes.rate.flatten().map_or(Ok(()), rate)?;
    changes.breaker.flatten().map_or(Ok(()), breaker)?;
    ensure(
        changes.jitter.is_none_or(|percent| percent <= MAX_JITTER),
        "JITTER must be at most 100",
    )
}

/// Checks the options of the message that a schedule sends, beyond what [`choices`]
/// checks.
pub fn template(choices: &Choices, has_group: bool, if_group: bool) -> Result<(), Invalid> {
    ensure(
        choices.expire_at().is_none() && choices.max_wait().is_none(),
        "a schedule must have neither EXPIREAT nor MAXWAIT",
    )?;
    ensure(
        choices.parent().is_none() && choices.children().is_none(),
        "a schedule must have neither PARENT nor CHILDREN",
    )?;
    ensure(has_group || !if_group, "IFGROUP needs a group")
}

/// Checks when a schedule ends, and how far its messages are spread.
pub fn schedule(limits: &Limits) -> Result<(), Invalid> {
    let numbers = [limits.until, limits.times, Some(limits.jitter)];
    numbers.into_iter().flatten().try_for_each(exact)?;
    ensure(limits.times != Some(0), "TIMES must be at least 1")
}

/// Checks the options of a message. Headers may be anything.
pub fn choices(choices: &Choices) -> Result<(), Invalid> {
    choices.retries.map_or(Ok(()), retries)?;
    choices.errors().map_or(Ok(()), errors)?;
    choices.backoff.map_or(Ok(()), backoff)?;
    let times = [
        choices.lease.map(NonZeroU64::get),
        choices.ttl,
        choices.retain(),
        choices.expire_at(),
        choices.max_wait(),
        choices.max_timeouts(),
    ];
    times.into_iter().flatten().try_for_each(exact)?;
    ensure(
        choices.ttl.is_none() || choices.expire_at().is_none(),
        "TTL and EXPIREAT exclude each other",
    )?;
    choices.label.as_deref().map_or(Ok(()), name)?;
    choices.takes().map_or(Ok(()), limited)?;
    choices.parent().map_or(Ok(()), parent)?;
    choices
        .children()
        .map_or(Ok(()), |children| positive(children.total))?;
    choices.batching().map_or(Ok(()), batching)
}

/// Checks PARENT.
pub fn parent(parent: &Parent) -> Result<(), Invalid> {
    ensure(
        !parent.key.is_empty(),
        "the key of PARENT must not be empty",
    )?;
    name(&parent.id)
}

/// Checks LIMITS and COST.
pub fn limited(limited: &Limited) -> Result<(), Invalid> {
    let names = &limited.names;
    ensure(
        names.len() <= MAX_LIMITS,
        "LIMITS must name at most 8 limits",
    )?;
    for (at, own) in names.iter().enumerate() {
        name(own)?;
        let is_plain = !own.contains(&b'*');
        ensure(is_plain, "the name of a limit must not have a * in LIMITS")?;
        let before = names.get(..at).unwrap_or_default();
        ensure(!before.contains(own), "LIMITS must name a limit once")?;
    }
    exact(limited.cost)
}

/// Checks BATCH, AFTER and PARK.
fn batching(batching: &Batching) -> Result<(), Invalid> {
    batching.batch.as_deref().map_or(Ok(()), name)?;
    let park = batching.park.and_then(|park| park.ms);
    park.map_or(Ok(()), |ms| exact(ms.get()))?;
    if let Some(after) = &batching.after {
        name(&after.batch)?;
    }
    ensure(
        !batching.is_after_itself(),
        "AFTER must not name the batch of the message itself",
    )
}
