//! Breakers: the times at which they open and close, and the groups that wait meanwhile.

mod probes;

use super::fixture::{new_message, Fixture, Got};
use crate::op::{Fetch, NackKind, Op};
use crate::settings::{Breaker, Changes, Clock, Settings};
use crate::{GroupIx, Millis, Moment, Queue};

const RULE: Breaker = Breaker {
    failures: 2,
    per: 100,
    open: 50,
    max: 150,
};

fn settings() -> Settings {
    Settings {
        retries: -1,
        breaker: Some(RULE),
        ..Settings::default()
    }
}

/// Fetches one message, which must be there.
fn fetch_one(b: &mut Fixture) -> Got {
    let got = b.fetch(Fetch::one());
    assert_eq!(got.len(), 1, "at {}", b.now);
    got[0]
}

/// Fetches and nacks one message after the other.
fn fail(b: &mut Fixture, times: usize) {
    for _ in 0..times {
        let got = fetch_one(b);
        b.nack(&[got.1], NackKind::Backoff);
    }
}

/// A queue with two messages of a group, or ungrouped ones, whose breaker has opened.
fn opened(group: Option<&'static str>) -> Fixture {
    let mut b = Fixture::new(settings());
    b.send(new_message(group));
    b.send(new_message(group));
    fail(&mut b, 2);
    b
}

/// The state of the breaker of the group `g`, or of the ungrouped messages.
fn breaker(b: &Fixture, group: Option<&str>) -> (&'static str, Option<Millis>) {
    let ix = group.map_or(Some(GroupIx::NONE), |name| {
        b.queue.state.groups.find(name.as_bytes())
    });
    let circuit = ix.and_then(|ix| b.queue.breaker(ix));
    circuit.map_or(("closed", None), |c| (c.state(b.now), c.open_until(b.now)))
}

const BOTH: [Option<&str>; 2] = [Some("g"), None];

#[test]
fn only_failures_within_the_window_count() {
    for (wait, opens) in [(99, true), (100, false)] {
        let mut b = Fixture::new(settings());
        b.to("g");
        fail(&mut b, 1);
        b.wait(wait);
        fail(&mut b, 1);
        assert_eq!(breaker(&b, Some("g")).0 == "open", opens, "after {wait} ms");
    }
}

#[test]
fn without_breaker_all_are_closed_and_another_one_keeps_what_is_open() {
    let alter = |breaker| {
        Op::Alter(Changes {
            breaker: Some(breaker),
            ..Changes::default()
        })
    };
    for group in BOTH {
        let mut b = opened(group);
        let until = b.now + 50;
        let other = Breaker {
            failures: 1,
            per: 1,
            open: 7,
            max: 70,
        };
        b.apply(&alter(Some(other)));
        assert_eq!(breaker(&b, group), ("open", Some(until)));
        b.wait(50);
        fail(&mut b, 1);
        assert_eq!(breaker(&b, group), ("open", Some(b.now + 70)));
        b.apply(&alter(None));
        assert_eq!(breaker(&b, group), ("closed", None));
        assert_eq!(b.take(1).len(), 1);
        b.apply(&alter(Some(RULE)));
        assert_eq!(b.queue.breakers_open(b.now), 0);
    }
}

#[test]
fn a_group_is_kept_while_open_or_half_open_and_for_its_failures() {
    let mut b = Fixture::new(Settings {
        retries: 0,
        dead_count: 1,
        ..settings()
    });
    let listed = |b: &Fixture| b.queue.groups(0, 9, None, b.now).1.len();
    b.to("g");
    b.to("h");
    fail(&mut b, 2);
    assert_eq!((b.queue.state.groups.len(), listed(&b)), (2, 0));
    b.apply(&Op::Purge {
        state: None,
        group: None,
    });
    assert_eq!((b.queue.state.groups.len(), listed(&b)), (2, 0));
    b.to("g");
    fail(&mut b, 1);
    b.apply(&Op::Purge {
        state: None,
        group: None,
    });
    assert_eq!(breaker(&b, Some("g")).0, "open");
    assert_eq!((b.queue.state.groups.len(), listed(&b)), (2, 1));
    assert_eq!(b.queue.groups_listed(), 1);
    b.wait(99);
    assert_eq!((b.queue.state.groups.len(), listed(&b)), (2, 1));
    b.wait(1);
    assert_eq!((b.queue.state.groups.len(), listed(&b)), (1, 1));
    b.to("g");
    let probe = fetch_one(&mut b);
    b.ack(&[probe.1]);
    assert_eq!((b.queue.state.groups.len(), listed(&b)), (0, 0));
}

#[test]
fn a_manual_clock_leads_a_breaker_through_its_times() {
    let advanced = |queue: &mut Queue, to: Millis| {
        queue
            .apply(
                &Op::Advance {
                    to,
                    skip_fires: false,
                },
                Moment::at_ms(0),
            )
            .unwrap();
    };
    let mut b = Fixture {
        queue: Queue::new(settings(), Clock::Manual(0), 0),
        now: 0,
        reports: Vec::new(),
    };
    b.to("g");
    fail(&mut b, 2);
    for (to, next) in [(50, 150), (150, 300), (300, 450)] {
        advanced(&mut b.queue, to - 1);
        assert!(b.take(1).is_empty());
        advanced(&mut b.queue, to);
        b.now = to;
        fail(&mut b, 1);
        assert_eq!(breaker(&b, Some("g")), ("open", Some(next)));
    }
}
