//! Reads the arguments of CREATE and ALTER: the options of a queue.

use super::option::{once, OptionWord};
use super::words::{looks_like_number, ANY, MS, SOME, SOME_MS};
use super::{Parsed, Words};
use crate::limits::MAX_JITTER;
use crate::settings::{Backoff, Changes, Clock, OnDead, OnRetry, Rate};
use crate::{Millis, MAX_EXACT};

/// Makes one kind of [`Backoff`] from its length in ms.
type BackoffKind = fn(Millis) -> Backoff;

/// The arguments of CREATE.
#[derive(Debug, PartialEq, Eq)]
pub struct NewQueue {
    /// The options that are given; the others come from the module's defaults.
    pub changes: Changes,
    /// The clock that the queue follows.
    pub clock: Clock,
}

/// Reads the arguments of CREATE: `[option value ...]`
pub fn create(mut words: Words<'_>) -> Parsed<NewQueue> {
    let mut changes = Changes::default();
    let mut clock = None;
    while let Some(option) = words.option() {
        match option.name() {
            what @ "CLOCK" => once(&mut clock, what, read_clock(&mut words, what)?)?,
            _ => read_setting(&mut changes, &option, &mut words)?,
        }
    }
    Ok(NewQueue {
        changes,
        clock: clock.unwrap_or(Clock::Server),
    })
}

/// Reads the arguments of ALTER: `option value [option value ...]`
///
/// Errors also where CLOCK is given: the clock of a queue cannot be changed.
pub fn alter(mut words: Words<'_>) -> Parsed<Changes> {
    let mut changes = Changes::default();
    while let Some(option) = words.option() {
        match option.name() {
            "CLOCK" => return Err("ERR CLOCK can only be set by DQ.CREATE".into()),
            _ => read_setting(&mut changes, &option, &mut words)?,
        }
    }
    Ok(changes)
}

fn read_setting(
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
            let choices = [("BLOCK", OnRetry::Block), ("SKIP", OnRetry::Skip)];
            let choice = words.choice(what, "BLOCK or SKIP", &choices)?;
            once(&mut changes.on_retry, what, choice)
        }
        "ONDEAD" => {
            let choices = [("CONTINUE", OnDead::Continue), ("BLOCK", OnDead::Block)];
            let choice = words.choice(what, "CONTINUE or BLOCK", &choices)?;
            once(&mut changes.on_dead, what, choice)
        }
        _ => Err(option.unknown()),
    }
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

/// Reads the value of CLOCK: `SERVER` or `MANUAL [start-ms]`. Without a start,
/// a manual clock starts at 0.
fn read_clock(words: &mut Words<'_>, what: &str) -> Parsed<Clock> {
    let choices = [("SERVER", false), ("MANUAL", true)];
    let manual = words.choice(what, "SERVER or MANUAL", &choices)?;
    if !manual {
        return Ok(Clock::Server);
    }
    // No option begins like a number, so a word that does is the start.
    let start = match words.peek().is_some_and(looks_like_number) {
        true => words.number("CLOCK MANUAL", MS)?,
        false => 0,
    };
    Ok(Clock::Manual(start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::testing::{error, words};

    #[test]
    fn every_option_is_read_in_any_case_and_order() {
        let text = "onDead block CLOCK manual 5 ONRETRY Skip groupconcurrency 9 RATE 3 per 1000 \
            maxrunning 8 MAXBYTES 7 MAXLEN 6 DEDUP 5 DEADCOUNT 4 DEADRETAIN 3 RETAINCOUNT 2 \
            RETAIN 1 TTL 0 JITTER 100 MAXBACKOFF 11 BACKOFF exp 12 RETRIES -1 LEASE 1";
        let expected = Changes {
            lease: Some(1),
            retries: Some(-1),
            backoff: Some(Backoff::Exp(12)),
            max_backoff: Some(11),
            jitter: Some(100),
            ttl: Some(0),
            retain: Some(1),
            retain_count: Some(2),
            dead_retain: Some(3),
            dead_count: Some(4),
            dedup: Some(5),
            max_len: Some(6),
            max_bytes: Some(7),
            max_running: Some(8),
            rate: Some(Some(Rate {
                count: 3,
                per: 1000,
            })),
            group_concurrency: Some(9),
            on_retry: Some(OnRetry::Skip),
            on_dead: Some(OnDead::Block),
        };
        let new = NewQueue {
            changes: expected.clone(),
            clock: Clock::Manual(5),
        };
        assert_eq!(words(text, create), Ok(new));
        let altered = words(&text.replace("CLOCK manual 5", ""), alter);
        assert_eq!(altered, Ok(expected));
    }

    #[test]
    fn the_clock_is_read_by_create_and_refused_by_alter() {
        let clock = |text| words(text, create).map(|new| new.clock);
        assert_eq!(clock(""), Ok(Clock::Server));
        assert_eq!(clock("CLOCK SERVER"), Ok(Clock::Server));
        assert_eq!(clock("CLOCK MANUAL"), Ok(Clock::Manual(0)));
        assert_eq!(clock("CLOCK MANUAL LEASE 9"), Ok(Clock::Manual(0)));
        for (text, expected) in [
            ("CLOCK", "CLOCK needs a value"),
            ("CLOCK WALL", "CLOCK must be SERVER or MANUAL, not 'WALL'"),
            (
                "CLOCK MANUAL -1",
                "CLOCK MANUAL must be an integer from 0 to 9007199254740991, not '-1'",
            ),
            ("CLOCK SERVER 5", "unknown option '5'"),
            ("CLOCK SERVER CLOCK SERVER", "CLOCK is given twice"),
        ] {
            assert_eq!(error(clock(text)), format!("ERR {expected}"));
        }
        let text = "ERR CLOCK can only be set by DQ.CREATE";
        assert_eq!(error(words("CLOCK SERVER", alter)), text);
    }

    #[test]
    fn a_rate_needs_a_period_unless_it_is_zero() {
        let rate = |text| words(text, alter).map(|changes| changes.rate);
        assert_eq!(rate("RATE 0"), Ok(Some(None)));
        assert_eq!(rate("RATE 0 PER 5"), Ok(Some(None)));
        assert_eq!(
            rate("RATE 1 PER 1"),
            Ok(Some(Some(Rate { count: 1, per: 1 })))
        );
        for (text, expected) in [
            ("RATE 5", "RATE needs PER"),
            ("RATE 5 EACH 5", "RATE needs PER"),
            ("RATE 5 PER", "PER needs a value"),
            (
                "RATE 5 PER 0",
                "PER must be an integer from 1 to 9007199254740991, not '0'",
            ),
            ("RATE 0 RATE 0", "RATE is given twice"),
            ("PER 5", "unknown option 'PER'"),
        ] {
            assert_eq!(error(rate(text)), format!("ERR {expected}"));
        }
    }

    #[test]
    fn errors_name_the_option_whose_value_is_bad() {
        for text in [
            "LEASE 0",
            "LEASE",
            "LEASE 9007199254740992",
            "RETRIES -2",
            "RETRIES 9007199254740992",
            "BACKOFF",
            "BACKOFF FIXED",
            "BACKOFF CUBIC 5",
            "BACKOFF EXP -1",
            "MAXBACKOFF -1",
            "JITTER 101",
            "JITTER 256",
            "TTL 1.5",
            "RETAIN x",
            "RETAINCOUNT -1",
            "DEADRETAIN 1e3",
            "DEADCOUNT -1",
            "DEDUP -1",
            "MAXLEN -1",
            "MAXBYTES -1",
            "MAXRUNNING -1",
            "GROUPCONCURRENCY 0",
            "ONRETRY CONTINUE",
            "ONDEAD SKIP",
            "TTL 1 TTL 1",
            "LEASE 5 lease 6",
        ] {
            let option = text.split(' ').next().unwrap();
            for error in [error(words(text, alter)), error(words(text, create))] {
                assert!(error.starts_with(&format!("ERR {option} ")), "{error}");
            }
        }
        assert_eq!(error(words("DELAY 5", alter)), "ERR unknown option 'DELAY'");
    }
}
