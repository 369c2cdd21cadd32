//! A half-open breaker and its probe: the messages that it lets out, and the events that
//! close or open it again.

use super::{breaker, explain, fail, fetch_one, opened, settings, BOTH};
use crate::message::state::State;
use crate::op::{Done, Fetch, NackKind, Op};
use crate::queue::inspect::explain::Code;
use crate::queue::tests::fixture::{new_message, Fixture};
use crate::settings::{OnRetry, Settings};
use crate::Moment;

#[test]
fn the_ack_of_the_probe_closes_the_breaker_and_forgets_the_failures() {
    for group in BOTH {
        let mut b = opened(group);
        b.wait(50);
        let probe = fetch_one(&mut b);
        let by = b.queue.id_of(1, b.queue.message(1).unwrap()).to_box();
        let until = Some(b.now + 30_000);
        assert_eq!(
            explain(&b, 2),
            (Code::BreakerProbing, until, Some(by.into_vec()))
        );
        assert!(b.take(1).is_empty());
        b.ack(&[probe.1]);
        assert_eq!(breaker(&b, group), ("closed", None));
        fail(&mut b, 1);
        assert_eq!(breaker(&b, group), ("closed", None));
        fail(&mut b, 1);
        assert_eq!(breaker(&b, group), ("open", Some(b.now + 50)));
    }
}

#[test]
fn the_failure_of_the_probe_opens_the_breaker_for_twice_as_long_up_to_max() {
    for group in BOTH {
        let mut b = opened(group);
        for length in [50, 100, 150, 150] {
            assert_eq!(breaker(&b, group), ("open", Some(b.now + length)));
            b.wait(length);
            fail(&mut b, 1);
        }
        // After the breaker was closed, its open time begins again with OPEN.
        b.wait(150);
        let probe = fetch_one(&mut b);
        b.ack(&[probe.1]);
        fail(&mut b, 2);
        assert_eq!(breaker(&b, group), ("open", Some(b.now + 50)));
    }
}

#[test]
fn the_lease_end_of_the_probe_is_a_failure() {
    let mut b = opened(Some("g"));
    b.wait(50);
    fetch_one(&mut b);
    b.wait(30_000);
    assert_eq!(breaker(&b, Some("g")), ("open", Some(b.now + 100)));
}

#[test]
fn a_probe_that_is_given_back_rejected_cancelled_or_purged_decides_nothing() {
    let purge = |group: Option<&'static str>| Op::Purge {
        state: Some(State::Running),
        group: group.map(|name| name.as_bytes().into()),
    };
    let cancel = |id: &[u8]| Op::Cancel {
        ids: vec![id.to_vec().into()],
    };
    for group in BOTH {
        for way in 0..5 {
            let mut b = opened(group);
            b.send(new_message(group));
            b.wait(50);
            let probe = fetch_one(&mut b);
            let id = b.queue.message(probe.0).unwrap();
            let id = b.queue.id_of(probe.0, id).to_box();
            match way {
                0 => drop(b.nack(&[probe.1], NackKind::Silent)),
                1 => drop(b.nack(&[probe.1], NackKind::Fatal)),
                2 => drop(b.apply(&cancel(&id))),
                3 => drop(b.apply(&purge(None))),
                _ if group.is_some() => drop(b.apply(&purge(group))),
                _ => continue,
            }
            assert_eq!(breaker(&b, group), ("half-open", None), "way {way}");
            let next = fetch_one(&mut b);
            assert!(b.take(1).is_empty(), "way {way}");
            b.nack(&[next.1], NackKind::Backoff);
            assert_eq!(breaker(&b, group), ("open", Some(b.now + 100)));
        }
    }
}

#[test]
fn messages_that_ran_before_it_opened_decide_nothing() {
    for group in BOTH {
        for end_after in [0, 50, 51] {
            let mut b = Fixture::new(Settings {
                group_concurrency: 9,
                ..settings()
            });
            for _ in 0..6 {
                b.send(new_message(group));
            }
            let old = b.fetch(Fetch {
                count: 6,
                ..Fetch::one()
            });
            b.nack(&[old[0].1, old[1].1], NackKind::Backoff);
            let until = b.now + 50;
            b.wait(end_after);
            let probe = (end_after > 50).then(|| fetch_one(&mut b));
            b.ack(&[old[2].1]);
            b.nack(&[old[3].1, old[4].1], NackKind::Backoff);
            let expected = match end_after {
                0 => ("open", Some(until)),
                _ => ("half-open", None),
            };
            assert_eq!(breaker(&b, group), expected, "after {end_after} ms");
            if let Some(probe) = probe {
                assert!(b.take(1).is_empty());
                b.ack(&[probe.1]);
                // The breaker is closed, so the next failure counts.
                b.nack(&[old[5].1], NackKind::Backoff);
                fail(&mut b, 1);
                assert_eq!(breaker(&b, group).0, "open");
            }
        }
    }
}

#[test]
fn a_batch_from_a_half_open_group_is_one_message() {
    for group in BOTH {
        let mut b = opened(group);
        b.wait(50);
        let all = Fetch {
            count: 9,
            per_group: 9,
            ..Fetch::one()
        };
        assert_eq!(b.fetch(all).len(), 1);
    }
    let mut b = opened(Some("g"));
    b.wait(50);
    let of_group = Fetch {
        count: 9,
        group: Some(b"g".into()),
        ..Fetch::one()
    };
    assert_eq!(b.fetch(of_group).len(), 1);
}

#[test]
fn noack_gets_nothing_from_a_half_open_one_and_passes_over_it() {
    let no_ack = |group: Option<&'static str>| Fetch {
        count: 9,
        group: group.map(|name| name.as_bytes().into()),
        no_ack: true,
        ..Fetch::one()
    };
    for group in BOTH {
        let mut b = opened(group);
        b.wait(50);
        let of_group = no_ack(group);
        assert!(!b.queue.can_serve(&of_group, b.now));
        assert!(b.fetch(of_group).is_empty());
        let other = b.to("other");
        assert!(b.queue.can_serve(&no_ack(None), b.now));
        let got = b.fetch(no_ack(None));
        assert_eq!(got, [(other, 0)]);
        assert_eq!(b.take(9), [1], "a leased one is let out");
    }
    // The open breaker is half-open now, and no event has told of it yet.
    let b = opened(Some("g"));
    let (mut late, at) = (b.queue.clone(), b.now + 50);
    assert!(!late.can_serve(&no_ack(None), at));
    let given = late.apply(&Op::fetch(no_ack(None)), Moment::at_ms(at));
    assert!(matches!(given, Ok(Done::Fetched(given)) if given.is_empty()));
}

#[test]
fn a_half_open_group_waits_for_its_failed_message_only_under_onretry_block() {
    for on_retry in [OnRetry::Block, OnRetry::Skip] {
        let mut b = Fixture::new(Settings {
            on_retry,
            ..settings()
        });
        b.to("g");
        b.to("g");
        fail(&mut b, 1);
        let got = fetch_one(&mut b);
        b.nack(&[got.1], NackKind::Delay(80));
        b.wait(50);
        let skips = on_retry == OnRetry::Skip;
        assert_eq!(b.take(2).len(), usize::from(skips));
        b.wait(30);
        assert_eq!(b.take(2).len(), usize::from(!skips));
    }
}

#[test]
fn a_copy_has_the_breakers_without_their_probes() {
    for group in BOTH {
        let mut b = opened(group);
        let copy = b.queue.copy();
        assert_eq!(copy.breakers_open(b.now), 1);
        b.wait(50);
        fetch_one(&mut b);
        let copy = Fixture {
            queue: b.queue.copy(),
            now: b.now,
            reports: Vec::new(),
        };
        assert_eq!(breaker(&copy, group), ("half-open", None));
        assert_eq!(copy.peek(), [1]);
    }
}
