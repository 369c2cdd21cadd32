//! ERRORS: a message keeps its last failed attempts.

use super::fixture::{new_message, Fixture, Got};
use crate::limits::MAX_KEPT_ERROR;
use crate::message::state::State;
use crate::message::Choices;
use crate::op::{Fetch, NackKind, Op, Redrive, Send};
use crate::settings::{Changes, Settings};
use crate::{Millis, Seq};

/// A failed attempt as a client sees it.
type Told = (u32, Millis, String, String);

fn keeping(errors: u8) -> Fixture {
    Fixture::new(Settings {
        lease: 10,
        retries: -1,
        errors,
        ..Settings::default()
    })
}

fn take(b: &mut Fixture, consumer: &'static str) -> Got {
    b.fetch(Fetch {
        consumer: Some(consumer.as_bytes().into()),
        ..Fetch::one()
    })[0]
}

fn fail(b: &mut Fixture, consumer: &'static str, kind: NackKind, error: Option<&[u8]>) {
    let (_, receipt) = take(b, consumer);
    b.apply(&Op::Nack {
        receipts: [receipt].into_iter().collect(),
        kind,
        error: error.map(Into::into),
        random: 0,
        note: None,
        pause: None,
    });
}

fn told(b: &Fixture, seq: Seq) -> Vec<Told> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let errors = b.queue.message(seq).unwrap().errors().iter();
    errors
        .map(|one| {
            let consumer = text(one.consumer.as_deref().unwrap_or(b"-"));
            (one.attempt, one.at, consumer, text(&one.text))
        })
        .collect()
}

fn one(attempt: u32, at: Millis, consumer: &str, text: &str) -> Told {
    (attempt, at, consumer.into(), text.into())
}

#[test]
fn each_failed_attempt_is_kept_with_its_consumer_and_the_oldest_goes() {
    let mut b = keeping(3);
    let seq = b.plain();
    fail(&mut b, "ann", NackKind::Delay(0), Some(b"first"));
    take(&mut b, "ben");
    b.wait(10);
    fail(&mut b, "ann", NackKind::Delay(0), None);
    let first = one(1, 1000, "ann", "first");
    let others = [one(2, 1010, "ben", "timeout"), one(3, 1010, "ann", "")];
    assert_eq!(told(&b, seq), [&[first][..], &others].concat());
    b.wait(5);
    let got = b.fetch(Fetch::one())[0];
    b.apply(&Op::EndLeases {
        receipts: [got.1].into_iter().collect(),
    });
    let last = one(4, 1015, "-", "timeout");
    assert_eq!(told(&b, seq), [&others[..], &[last]].concat());
}

#[test]
fn what_counts_no_attempt_is_not_kept_and_what_kills_is() {
    let mut b = keeping(9);
    let seq = b.plain();
    fail(&mut b, "ann", NackKind::Silent, Some(b"busy"));
    fail(&mut b, "ann", NackKind::Snooze(1), Some(b"later"));
    assert_eq!(told(&b, seq), []);
    b.wait(1);
    fail(&mut b, "ann", NackKind::Fatal, Some(b"no such user"));
    assert_eq!(b.state(seq), Some(State::Dead));
    assert_eq!(told(&b, seq), [one(1, 1001, "ann", "no such user")]);
    b.apply(&Op::Redrive(Redrive::Oldest(1)));
    fail(&mut b, "ben", NackKind::Delay(0), Some(b"again"));
    assert_eq!(
        told(&b, seq),
        [
            one(1, 1001, "ann", "no such user"),
            one(1, 1001, "ben", "again")
        ]
    );
}

#[test]
fn a_text_is_cut_at_4_kib_behind_a_character() {
    let mut b = keeping(2);
    let seq = b.plain();
    let long = format!("{}\u{20ac}", "x".repeat(MAX_KEPT_ERROR - 1));
    fail(&mut b, "ann", NackKind::Delay(0), Some(long.as_bytes()));
    fail(&mut b, "ann", NackKind::Delay(0), Some(&[0xff; 5000]));
    let errors = b.queue.message(seq).unwrap().errors();
    assert_eq!(*errors[0].text, long.as_bytes()[..MAX_KEPT_ERROR - 1]);
    assert_eq!(*errors[1].text, [0xff; MAX_KEPT_ERROR]);
}

#[test]
fn a_message_may_say_how_many_are_kept_and_a_change_holds_from_the_next_on() {
    let mut b = keeping(0);
    let mut choices = Choices::default();
    choices.change_rare(|rare| rare.errors = Some(1));
    let own = b.send(Send {
        choices,
        ..new_message(None)
    });
    for _ in 0..2 {
        fail(&mut b, "ann", NackKind::Delay(0), Some(b"x"));
    }
    assert_eq!(told(&b, own), [one(2, 1000, "ann", "x")]);
    fail(&mut b, "ann", NackKind::Fatal, None);
    let seq = b.plain();
    let bytes = |b: &Fixture| b.queue.message(seq).unwrap().heap_bytes();
    fail(&mut b, "ann", NackKind::Delay(0), None);
    let without = bytes(&b);
    assert_eq!(told(&b, seq), []);
    for (errors, kept) in [(3, 1), (3, 2), (1, 1), (0, 0)] {
        b.apply(&Op::Alter(Changes {
            errors: Some(errors),
            ..Changes::default()
        }));
        fail(&mut b, "ann", NackKind::Delay(0), None);
        assert_eq!(told(&b, seq).len(), kept);
        assert_eq!(bytes(&b) > without, kept > 0);
    }
    assert_eq!(bytes(&b), without);
}
