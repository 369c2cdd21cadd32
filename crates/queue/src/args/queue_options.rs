//! Reads the options of a queue, as CREATE and ALTER have them.

use super::option::{once, OptionWord};
use super::words::{ANY, ERRORS, MS, SOME, SOME_MS};
use super::{Parsed, Words};
use crate::dead_letters::{bit, DeadTo};
use crate::limits::{MAX_FAILURES, MAX_JITTER};
use crate::message::state::Reason;
use crate::settings::{Backoff, Breaker, Changes, DefaultBackoff, Fair, OnDead, OnRetry, Rate};
use crate::{Millis, MAX_EXACT};

/// Makes one kind of [`Backoff`] from its length in ms.
type BackoffKind = fn(Millis) -> Backoff;

pub fn read_setting(
    changes: &mut Changes,
    option: &OptionWord<'_>,
    words: &mut Words<'_>,
) -> Parsed<()> {
    let what = option.name();
    match what {
        "LEASE" => once(&mut changes.lease, what, words.number(what, SOME_MS)?),
        "RETRIES" => once(&mut changes.retries, what, retries(words, what)?),
        "BACKOFF" => once(&mut changes.backoff, what, backoff(words, what)?),
        "MAXBACKOFF" => once(&mut changes.max_backoff, what, words.number(what, MS)?),
        "JITTER" => once(
            &mut changes.jitter,
            what,
            words.number(what, 0..=MAX_JITTER)?,
        ),
        "TTL" => once(&mut changes.ttl, what, words.number(what, MS)?),
        "RETAIN" => once(&mut changes.retain, what, words.number(what, MS)?),
        "RETAINCOUNT" => once(&mut changes.retain_count, what, words.number(what, ANY)?),
        "DEADRETAIN" => once(&mut changes.dead_retain, what, words.number(what, MS)?),
        "DEADCOUNT" => once(&mut changes.dead_count, what, words.number(what, ANY)?),
        "DEDUP" => once(&mut changes.dedup, what, words.number(what, MS)?),
        "MAXLEN" => once(&mut changes.max_len, what, words.number(what, ANY)?),
        "MAXBYTES" => once(&mut changes.max_bytes, what, words.number(what, ANY)?),
        "MAXRUNNING" => once(&mut changes.max_running, what, words.number(what, ANY)?),
        "RATE" => once(&mut changes.rate, what, rate(words, what)?),
        "GROUPCONCURRENCY" => {
            let count = words.number(what, SOME)?;
            once(&mut changes.group_concurrency, what, count)
        }
        "ONRETRY" => {
            let choices = OnRetry::ALL.map(|choice| (choice.name(), choice));
            let choice = words.choice(what, "BLOCK, SKIP or ALONE", &choices)?;
            once(&mut changes.on_retry, what, choice)
        }
        "ONDEAD" => {
            let choices = [("CONTINUE", OnDead::Continue), ("BLOCK", OnDead::Block)];
            let choice = words.choice(what, "CONTINUE or BLOCK", &choices)?;
            once(&mut changes.on_dead, what, choice)
        }
        "BREAKER" => once(&mut changes.breaker, what, breaker(words, what)?),
        "MAXTIMEOUTS" => once(&mut changes.max_timeouts, what, words.number(what, ANY)?),
        "ERRORS" => once(&mut changes.errors, what, words.number(what, ERRORS)?),
        "DEADTO" => once(&mut changes.dead_to, what, dead_to(words, what)?),
        "EVENTS" => {
            let key = words.bytes(what)?;
            let events = (!key.is_empty()).then(|| key.into());
            once(&mut changes.events, what, events)
        }
        "EVENTSLEN" => once(&mut changes.events_len, what, words.number(what, SOME)?),
        "FAIR" => {
            let choices = Fair::ALL.map(|fair| (fair.name(), fair));
            let fair = words.choice(what, "COUNT, TIME or COST", &choices)?;
            once(&mut changes.fair, what, fair)
        }
        "COMPRESS" => {
            let compress = words.choice(what, "ON or OFF", &[("ON", true), ("OFF", false)])?;
            once(&mut changes.compress, what, compress)
        }
        "SENDS" => {
            let choices = [("ON", false), ("OFF", true)];
            let closed = words.choice(what, "ON or OFF", &choices)?;
            once(&mut changes.closed, what, closed)
        }
        _ => Err(option.unknown()),
    }
}

/// Reads the value of DEADTO: `key [reason ...]`. An empty key stands for none. A word that is
/// followed by a number is not a reason but the option RETRIES.
fn dead_to(words: &mut Words<'_>, what: &str) -> Parsed<Option<Box<DeadTo>>> {
    let key = words.bytes(what)?;
    if key.is_empty() {
        return Ok(None);
    }
    let mut reasons = 0;
    while let Some(word) = words.peek() {
        let reason = Reason::ALL
            .into_iter()
            .find(|reason| word.eq_ignore_ascii_case(reason.name().as_bytes()));
        let Some(reason) = reason.filter(|_| !words.is_number_next()) else {
            break;
        };
        words.take();
        reasons |= bit(reason);
    }
    Ok(Some(Box::new(DeadTo {
        key: key.into(),
        reasons,
    })))
}

/// Reads the value of RETRIES: how many failures of a message are forgiven; -1
/// forgives all.
pub fn retries(words: &mut Words<'_>, what: &str) -> Parsed<i64> {
    words.number(what, -1..=MAX_EXACT as i64)
}

/// Reads the value of BACKOFF: `FIXED ms`, `LINEAR ms` or `EXP ms`
pub fn backoff(words: &mut Words<'_>, what: &str) -> Parsed<Backoff> {
    let kinds: [(&str, BackoffKind); 3] = [
        ("FIXED", Backoff::Fixed),
        ("LINEAR", Backoff::Linear),
        ("EXP", Backoff::Exp),
    ];
    let kind = words.choice(what, "FIXED, LINEAR or EXP", &kinds)?;
    Ok(kind(words.number(what, MS)?))
}

/// Reads the backoff of queues that say nothing of it: `NONE`, or `kind ms [MAXBACKOFF ms]
/// [JITTER percent]`.
pub fn default_backoff(mut words: Words<'_>) -> Parsed<DefaultBackoff> {
    if words.took("NONE") {
        words.end()?;
        return Ok(DefaultBackoff::NONE);
    }
    let mut read = DefaultBackoff {
        backoff: backoff(&mut words, "BACKOFF")?,
        ..DefaultBackoff::NONE
    };
    let (mut max, mut jitter) = (None, None);
    while let Some(option) = words.option() {
        match option.name() {
            what @ "MAXBACKOFF" => once(&mut max, what, words.number(what, MS)?)?,
            what @ "JITTER" => once(&mut jitter, what, words.number(what, 0..=MAX_JITTER)?)?,
            _ => return Err(option.unknown()),
        }
    }
    read.max_backoff = max.unwrap_or(0);
    read.jitter = jitter.unwrap_or(0);
    Ok(read)
}

/// Reads the value of RATE: `n PER ms`, or `0` with or without PER. Returns
/// `None` for 0, which means no limit.
pub fn rate(words: &mut Words<'_>, what: &str) -> Parsed<Option<Rate>> {
    let count = words.number(what, ANY)?;
    if !words.took("PER") {
        return match count {
            0 => Ok(None),
            _ => Err(format!("ERR {what} needs PER").into()),
        };
    }
    let per = words.number("PER", SOME_MS)?;
    Ok((count > 0).then_some(Rate { count, per }))
}

/// Reads the value of BREAKER: `n PER ms OPEN ms [MAX ms]`, or `0` with or without the
/// rest. Returns `None` for 0, which means no breaker. Without MAX it is OPEN.
///
/// Errors: a part is missing or out of range, or MAX is below OPEN.
pub fn breaker(words: &mut Words<'_>, what: &str) -> Parsed<Option<Breaker>> {
    let failures = words.number(what, 0..=MAX_FAILURES)?;
    if !words.took("PER") {
        return match failures {
            0 => Ok(None),
            _ => Err(format!("ERR {what} needs PER").into()),
        };
    }
    let per = words.number("PER", SOME_MS)?;
    if !words.took("OPEN") {
        return Err(format!("ERR {what} needs OPEN").into());
    }
    let open = words.number("OPEN", SOME_MS)?;
    let max = match words.took("MAX") {
        true => words.number("MAX", SOME_MS)?,
        false => open,
    };
    if max < open {
        return Err("ERR MAX of BREAKER is below OPEN".into());
    }
    Ok((failures > 0).then_some(Breaker {
        failures,
        per,
        open,
        max,
    }))
}
