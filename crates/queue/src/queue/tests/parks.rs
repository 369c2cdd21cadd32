//! PARK and SIGNAL: messages that wait for a signal.

use std::num::NonZeroU64;

use super::fixture::{named, new_message, Fixture};
use crate::message::after::{Batching, Park};
use crate::message::state::State;
use crate::message::{Choices, RareChoices};
use crate::op::{AckSend, Done, Fetch, NackKind, Op, Send, Sent, Signal};
use crate::queue::rebuild::validate;
use crate::settings::Settings;
use crate::{Millis, Receipt, Seq};

fn park(ms: Millis) -> Park {
    Park {
        ms: NonZeroU64::new(ms),
    }
}

fn parked(send: Send<'static>, ms: Millis) -> Send<'static> {
    let rare = RareChoices {
        batching: Some(Box::new(Batching {
            park: Some(park(ms)),
            ..Batching::default()
        })),
        ..RareChoices::default()
    };
    Send {
        choices: Choices {
            rare: Some(Box::new(rare)),
            ..Choices::default()
        },
        ..send
    }
}

fn signal(b: &mut Fixture, id: &'static str, text: &'static [u8]) -> Done {
    b.apply(&Op::Signal {
        id: id.as_bytes().into(),
        text: text.into(),
    })
}

fn one(b: &mut Fixture) -> (Seq, Receipt) {
    let got = b.fetch(Fetch::one());
    assert_eq!(got.len(), 1);
    got[0]
}

#[test]
fn a_parked_message_keeps_nothing_but_its_entries_in_the_indexes() {
    let mut b = Fixture::new(Settings::default());
    let seq = b.send(parked(named("a"), 50));
    let message = b.queue.message(seq).unwrap();
    assert_eq!(message.choices(), None);
    assert_eq!(message.parked_until(), Some(b.now + 50));
    assert_eq!(message.due_at(), b.now);
    assert_eq!(validate(&b.queue), Ok(()));
    assert_eq!(b.wait(49).due, 0);
    assert_eq!((b.wait(1).due, b.state(seq)), (1, Some(State::Ready)));
    assert_eq!(validate(&b.queue), Ok(()));
}

#[test]
fn an_operation_sees_the_end_of_a_wait_that_is_not_processed_yet() {
    let mut b = Fixture::new(Settings::default());
    let seq = b.send(parked(named("a"), 50));
    b.now += 50;
    let moment = crate::Moment::at_ms(b.now);
    let done = b.queue.apply(&Op::fetch(Fetch::one()), moment).unwrap();
    let Done::Fetched(given) = done else {
        panic!("{done:?}");
    };
    assert_eq!(given[0].seq, seq);
}

#[test]
fn a_failed_message_that_was_parked_holds_its_group_no_longer() {
    let mut b = Fixture::new(Settings::default());
    let first = b.to("g");
    let second = b.to("g");
    let (_, receipt) = one(&mut b);
    b.nack(&[receipt], NackKind::Delay(0));
    let (seq, receipt) = one(&mut b);
    assert_eq!(seq, first);
    b.nack(&[receipt], NackKind::Park(park(1000)));
    assert_eq!(b.take(9), [second]);
    assert_eq!(validate(&b.queue), Ok(()));
}

#[test]
fn a_delivery_that_has_not_got_the_signal_cannot_park() {
    let mut b = Fixture::new(Settings::default());
    let seq = b.send(named("a"));
    let (_, receipt) = one(&mut b);
    assert_eq!(signal(&mut b, "a", b"go"), Done::Flag(true));
    b.nack(&[receipt], NackKind::Park(park(0)));
    assert_eq!(b.state(seq), Some(State::Ready));
    let (_, receipt) = one(&mut b);
    assert_eq!(b.queue.message(seq).unwrap().signal(), Some(&b"go"[..]));
    b.nack(&[receipt], NackKind::Park(park(0)));
    assert_eq!(b.state(seq), Some(State::Held));
    assert_eq!(b.queue.message(seq).unwrap().signal(), None);
    assert_eq!(validate(&b.queue), Ok(()));
}

#[test]
fn in_a_copy_parked_messages_are_parked() {
    let mut b = Fixture::new(Settings::default());
    let seq = b.send(parked(named("a"), 50));
    let copy = b.queue.copy();
    assert!(copy.message(seq).unwrap().is_parked());
    assert_eq!(validate(&copy), Ok(()));
}

#[test]
fn what_a_signal_lets_go_comes_behind_what_was_sent_before_it() {
    let mut b = Fixture::new(Settings::default());
    let of = |id, group| Send {
        group: new_message(Some(group)).group,
        ..named(id)
    };
    let parks = ["a", "b", "c"].map(|id| b.send(parked(of(id, id), 0)));
    b.wait(10);
    let sent = b.to("d");
    signal(&mut b, "c", b"go");
    let to = |id: &'static str| Signal {
        id: id.as_bytes().into(),
        text: b"go"[..].into(),
    };
    let done = b.apply(&Op::AckSend(AckSend {
        receipt: None,
        result: None,
        sends: vec![new_message(Some("e"))],
        signals: vec![to("b"), to("a")],
    }));
    let Done::AckSent(Some(outcomes)) = done else {
        panic!("{done:?}");
    };
    let Sent::Added(next) = outcomes[0] else {
        panic!("{outcomes:?}");
    };
    let expected = [sent, parks[2], next, parks[1], parks[0]];
    assert_eq!(b.peek(), expected);
    assert_eq!(validate(&b.queue), Ok(()));
    assert_eq!(b.take(9), expected);
}
