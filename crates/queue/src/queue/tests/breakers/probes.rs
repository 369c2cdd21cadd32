//! A half-open breaker and its probe: the messages that it lets out, and the events that
//! close or open it again.

use super::{breaker, fail, fetch_one, opened, settings, BOTH};
use crate::op::{Done, Fetch, NackKind, Op};
use crate::queue::tests::fixture::Fixture;
use crate::settings::{OnRetry, Settings};
use crate::Moment;

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
