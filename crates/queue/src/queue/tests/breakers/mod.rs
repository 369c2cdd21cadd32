//! Breakers: the times at which they open and close, and the groups that wait meanwhile.

mod probes;

use super::fixture::{new_message, Fixture, Got};
use crate::message::state::State;
use crate::op::{Done, Fetch, Happened, NackKind, Op};
use crate::queue::inspect::explain::Code;
use crate::settings::{Breaker, Changes, Clock, Settings};
use crate::{GroupIx, Millis, Moment, Queue, Seq};

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
        b.queue.groups.find(name.as_bytes())
    });
    let circuit = ix.and_then(|ix| b.queue.breaker(ix));
    circuit.map_or(("closed", None), |c| (c.state(b.now), c.open_until(b.now)))
}

fn explain(b: &Fixture, seq: Seq) -> (Code, Option<Millis>, Option<Vec<u8>>) {
    let message = b.queue.message(seq).unwrap();
    let id = b.queue.id_of(seq, message).to_box();
    let told = b.queue.explain(&id, b.now).unwrap();
    (told.code, told.until, told.by.map(Into::into))
}

const BOTH: [Option<&str>; 2] = [Some("g"), None];

#[test]
fn nothing_is_delivered_from_the_last_failure_to_the_end_of_the_open_time() {
    for group in BOTH {
        let mut b = opened(group);
        let state = match group {
            Some(_) => State::Blocked,
            None => State::Ready,
        };
        assert_eq!(breaker(&b, group), ("open", Some(b.now + 50)));
        assert_eq!(b.queue.breakers_open(b.now), 1);
        assert_eq!(b.state(1), Some(state));
        assert!(b.take(1).is_empty() && b.peek().is_empty());
        let by = group.map(Into::into);
        assert_eq!(explain(&b, 1), (Code::BreakerOpen, Some(b.now + 50), by));
        b.wait(49);
        assert!(b.take(1).is_empty());
        assert_eq!(b.queue.next_wake(b.now, true), Some(b.now + 1));
        // Also before the event is processed.
        let (mut late, at) = (b.queue.clone(), b.now + 1);
        assert!(late.can_serve(&Fetch::one(), at));
        let fetch = Op::fetch(Fetch::one());
        let given = late.apply(&fetch, Moment::at_ms(at));
        assert!(matches!(given, Ok(Done::Fetched(given)) if given.len() == 1));
        b.wait(1);
        assert_eq!(breaker(&b, group), ("half-open", None));
        assert_eq!(b.queue.breakers_open(b.now), 0);
        assert_eq!(b.peek(), [1]);
        assert_eq!(b.take(9), [1]);
    }
}

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
fn nacks_lease_ends_and_deadly_failures_count_but_not_silent_and_fatal_ones() {
    let once = Settings {
        breaker: Some(Breaker {
            failures: 1,
            ..RULE
        }),
        retries: 0,
        ..settings()
    };
    for (kind, opens) in [
        (NackKind::Backoff, true),
        (NackKind::Delay(5), true),
        (NackKind::Silent, false),
        (NackKind::Fatal, false),
    ] {
        let mut b = Fixture::new(once.clone());
        b.to("g");
        let got = fetch_one(&mut b);
        b.nack(&[got.1], kind);
        assert_eq!(breaker(&b, Some("g")).0 == "open", opens, "{kind:?}");
    }
    let mut b = Fixture::new(once);
    b.to("g");
    fetch_one(&mut b);
    b.wait(30_000);
    assert_eq!(breaker(&b, Some("g")).0, "open");
    assert_eq!(b.state(1), Some(State::Dead));
}

#[test]
fn resume_closes_the_breaker_and_the_group_keeps_its_position() {
    for group in BOTH {
        for wait in [0, 50] {
            let mut b = opened(group);
            b.wait(wait);
            b.to("other");
            let name = group.map(|name| name.as_bytes().into());
            b.apply(&Op::Resume { group: name });
            assert_eq!(breaker(&b, group), ("closed", None));
            let mut taken = b.take(2);
            if wait == 0 && group.is_some() {
                taken.reverse();
            }
            assert_eq!(taken, [1, 3]);
            let got = b.queue.leases.iter().next().unwrap();
            b.nack(&[got.receipt], NackKind::Backoff);
            assert_eq!(
                breaker(&b, group),
                ("closed", None),
                "failures are forgotten"
            );
        }
    }
    let mut b = opened(None);
    b.apply(&Op::Resume {
        group: Some(b"g".into()),
    });
    assert_eq!(breaker(&b, None).0, "open");
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
    assert_eq!((b.queue.groups.len(), listed(&b)), (2, 0));
    b.apply(&Op::Purge {
        state: None,
        group: None,
    });
    assert_eq!((b.queue.groups.len(), listed(&b)), (2, 0));
    b.to("g");
    fail(&mut b, 1);
    b.apply(&Op::Purge {
        state: None,
        group: None,
    });
    assert_eq!(breaker(&b, Some("g")).0, "open");
    assert_eq!((b.queue.groups.len(), listed(&b)), (2, 1));
    assert_eq!(b.queue.groups_listed(), 1);
    b.wait(99);
    assert_eq!((b.queue.groups.len(), listed(&b)), (2, 1));
    b.wait(1);
    assert_eq!((b.queue.groups.len(), listed(&b)), (1, 1));
    b.to("g");
    let probe = fetch_one(&mut b);
    b.ack(&[probe.1]);
    assert_eq!((b.queue.groups.len(), listed(&b)), (0, 0));
}

#[test]
fn each_change_of_a_breaker_is_an_event() {
    let happened = |b: &mut Fixture| b.queue.take_effects().happened.has(Happened::BREAKER);
    for group in BOTH {
        let mut b = opened(group);
        assert!(happened(&mut b), "opened");
        b.wait(49);
        assert!(!happened(&mut b));
        b.wait(1);
        assert!(happened(&mut b), "half-open");
        let probe = fetch_one(&mut b);
        assert!(!happened(&mut b));
        b.nack(&[probe.1], NackKind::Backoff);
        assert!(happened(&mut b), "opened again");
        b.wait(100);
        happened(&mut b);
        let probe = fetch_one(&mut b);
        b.ack(&[probe.1]);
        assert!(happened(&mut b), "closed");
        let name = group.map(|name| name.as_bytes().into());
        b.apply(&Op::Resume { group: name });
        assert!(!happened(&mut b), "it is closed already");
    }
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
