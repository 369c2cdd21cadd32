//! Tests of the arguments of CREATE, ALTER, QUEUE_OPTIONS.

use crate::args::alter::*;
use crate::args::create::*;
use crate::args::testing::{error, words};
use crate::dead_letters::{bit, DeadTo};
use crate::message::state::Reason;
use crate::settings::{Backoff, Breaker, Changes, Clock, Fair, OnDead, OnRetry, Rate};

#[test]
fn every_option_is_read_in_any_case_and_order() {
    let text = "onDead block breaker 3 PER 60 open 7 max 28 CLOCK manual 5 ONRETRY Skip groupconcurrency 9 RATE 3 per 1000 sends Off maxTimeouts 10 Errors 100 \
        maxrunning 8 MAXBYTES 7 MAXLEN 6 DEDUP 5 DEADCOUNT 4 DEADRETAIN 3 RETAINCOUNT 2 \
        RETAIN 1 fair Time EVENTSLEN 77 events stream deadTo Retries RETRIES expired TTL 0 JITTER 100 MAXBACKOFF 11 BACKOFF exp 12 RETRIES -1 LEASE 1";
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
        breaker: Some(Some(Breaker {
            failures: 3,
            per: 60,
            open: 7,
            max: 28,
        })),
        fair: Some(Fair::Time),
        closed: Some(true),
        max_timeouts: Some(10),
        errors: Some(100),
        dead_to: Some(Some(Box::new(DeadTo {
            key: b"Retries"[..].into(),
            reasons: bit(Reason::Retries) | bit(Reason::Expired),
        }))),
        events: Some(Some(b"stream"[..].into())),
        events_len: Some(77),
    };
    let new = NewQueue {
        changes: expected.clone(),
        clock: Clock::Manual(5),
        if_missing: true,
    };
    let text = &text.replace("breaker", "nx breaker");
    assert_eq!(words(text, create), Ok(new));
    let altered = &text
        .replace("nx breaker", "breaker")
        .replace("CLOCK manual 5", "");
    assert_eq!(words(altered, alter), Ok(expected));
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
fn a_breaker_needs_a_window_and_an_open_time_unless_it_is_zero() {
    let breaker = |text| words(text, alter).map(|changes| changes.breaker);
    for text in ["BREAKER 0", "BREAKER 0 PER 5 OPEN 5"] {
        assert_eq!(breaker(text), Ok(Some(None)));
    }
    for (text, failures, max) in [
        ("BREAKER 1 PER 2 OPEN 3", 1, 3),
        ("breaker 1000 per 2 open 3 max 3", 1000, 3),
        ("BREAKER 1 PER 2 OPEN 3 MAX 4", 1, 4),
    ] {
        let expected = Breaker {
            failures,
            per: 2,
            open: 3,
            max,
        };
        assert_eq!(breaker(text), Ok(Some(Some(expected))));
    }
    for (text, expected) in [
        ("BREAKER", "BREAKER needs a value"),
        (
            "BREAKER 1001 PER 1 OPEN 1",
            "BREAKER must be an integer from 0 to 1000, not '1001'",
        ),
        ("BREAKER 5", "BREAKER needs PER"),
        ("BREAKER 5 PER 5", "BREAKER needs OPEN"),
        ("BREAKER 5 PER 5 MAX 5 OPEN 5", "BREAKER needs OPEN"),
        (
            "BREAKER 5 PER 0 OPEN 5",
            "PER must be an integer from 1 to 9007199254740991, not '0'",
        ),
        (
            "BREAKER 5 PER 5 OPEN 0",
            "OPEN must be an integer from 1 to 9007199254740991, not '0'",
        ),
        (
            "BREAKER 5 PER 5 OPEN 5 MAX 4",
            "MAX of BREAKER is below OPEN",
        ),
        ("BREAKER 0 BREAKER 0", "BREAKER is given twice"),
        ("OPEN 5", "unknown option 'OPEN'"),
    ] {
        assert_eq!(error(breaker(text)), format!("ERR {expected}"));
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
        "SENDS",
        "SENDS 1",
        "SENDS ON SENDS ON",
        "MAXTIMEOUTS",
        "MAXTIMEOUTS -1",
        "MAXTIMEOUTS x",
        "ERRORS",
        "ERRORS -1",
        "ERRORS 101",
        "ERRORS x",
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
