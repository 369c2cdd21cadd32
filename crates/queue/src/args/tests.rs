//! Tests of the arguments of CREATE, ALTER, QUEUE_OPTIONS.

use crate::args::alter::*;
use crate::args::create::*;
use crate::args::testing::words;
use crate::dead_letters::{bit, DeadTo};
use crate::message::state::Reason;
use crate::settings::{Backoff, Breaker, Changes, Clock, Fair, OnDead, OnRetry, Rate};

#[test]
fn every_option_is_read_in_any_case_and_order() {
    let text = "onDead block breaker 3 PER 60 open 7 max 28 CLOCK manual 5 ONRETRY Skip groupconcurrency 9 RATE 3 per 1000 sends Off maxTimeouts 10 Errors 100 \
        maxrunning 8 MAXBYTES 7 MAXLEN 6 DEDUP 5 DEADCOUNT 4 DEADRETAIN 3 RETAINCOUNT 2 \
        RETAIN 1 compress On fair Time EVENTSLEN 77 events stream deadTo Retries RETRIES expired TTL 0 JITTER 100 MAXBACKOFF 11 BACKOFF exp 12 RETRIES -1 LEASE 1";
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
        compress: Some(true),
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
