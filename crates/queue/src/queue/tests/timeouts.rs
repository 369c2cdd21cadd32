//! MAXTIMEOUTS: a message that has killed too many of its workers dies.

use super::fixture::{new_message, Fixture};
use crate::message::state::{Reason, State};
use crate::message::Choices;
use crate::op::{Fetch, NackKind, Op, Redrive, Send};
use crate::settings::Settings;
use crate::Seq;

fn forgiving(max_timeouts: u64) -> Fixture {
    Fixture::new(Settings {
        lease: 10,
        retries: -1,
        max_timeouts,
        ..Settings::default()
    })
}

fn own(max_timeouts: u64) -> Send<'static> {
    let mut choices = Choices::default();
    choices.change_rare(|rare| rare.max_timeouts = Some(max_timeouts));
    Send {
        choices,
        ..new_message(None)
    }
}

/// Fetches the message and lets its lease run out.
fn lose(b: &mut Fixture, seq: Seq) {
    assert_eq!(b.take(1), [seq]);
    b.wait(10);
}

fn reason(b: &Fixture, seq: Seq) -> Option<Reason> {
    b.queue.view(seq, b.now).and_then(|view| view.reason())
}

#[test]
fn a_message_dies_of_its_last_timeout_whatever_retries_says() {
    let mut b = forgiving(3);
    let seq = b.plain();
    lose(&mut b, seq);
    lose(&mut b, seq);
    assert_eq!(b.state(seq), Some(State::Ready));
    lose(&mut b, seq);
    assert_eq!(b.state(seq), Some(State::Dead));
    assert_eq!(reason(&b, seq), Some(Reason::Timeouts));
}

#[test]
fn a_lease_that_was_lost_counts_and_a_nack_does_not() {
    let mut b = forgiving(2);
    let seq = b.plain();
    for _ in 0..5 {
        let got = b.fetch(Fetch::one());
        b.nack(&[got[0].1], NackKind::Delay(0));
    }
    assert_eq!(b.state(seq), Some(State::Ready));
    for expected in [State::Ready, State::Dead] {
        let receipts = [b.fetch(Fetch::one())[0].1].into_iter().collect();
        b.apply(&Op::EndLeases { receipts });
        assert_eq!(b.state(seq), Some(expected));
    }
    assert_eq!(reason(&b, seq), Some(Reason::Timeouts));
}

#[test]
fn a_message_may_have_a_limit_of_its_own() {
    let mut b = forgiving(1);
    let (endless, two) = (b.send(own(0)), b.send(own(2)));
    for _ in 0..2 {
        assert_eq!(b.take(9), [endless, two]);
        b.wait(10);
    }
    assert_eq!(b.state(endless), Some(State::Ready));
    assert_eq!(b.state(two), Some(State::Dead));
}

#[test]
fn a_message_that_is_run_again_begins_anew() {
    let mut b = forgiving(1);
    let seq = b.plain();
    lose(&mut b, seq);
    assert_eq!(b.state(seq), Some(State::Dead));
    b.apply(&Op::Redrive(Redrive::Oldest(1)));
    assert_eq!(b.state(seq), Some(State::Ready));
    assert_eq!(reason(&b, seq), None);
    lose(&mut b, seq);
    assert_eq!(reason(&b, seq), Some(Reason::Timeouts));
}
