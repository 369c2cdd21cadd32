//! PARENT and CHILDREN: messages that wait for others of this or another queue.

mod random;
mod steps;

use crate::message::after::OnFail;
use crate::message::kin::{ChildCounts, Children, Kin, News, Parent};
use crate::message::state::State;
use crate::message::{Choices, RareChoices};
use crate::op::{Counted, CountedOne, Done, Fetch, Op, Send};
use crate::queue::rebuild::validate;
use crate::queue::tests::fixture::{kill, named, Fixture};
use crate::settings::Settings;
use crate::Seq;

/// The key of the queue in these tests.
const KEY: &[u8] = b"q";

fn with_rare(send: Send<'static>, change: impl FnOnce(&mut RareChoices)) -> Send<'static> {
    let mut choices = send.choices.clone();
    choices.change_rare(change);
    Send { choices, ..send }
}

fn parent(id: &'static str, children: u64) -> Send<'static> {
    with_rare(named(id), |rare| {
        rare.kin.get_or_insert_default().children = Some(Box::new(Children::new(children)));
    })
}

fn child_of(send: Send<'static>, id: &str, on_dead: OnFail) -> Send<'static> {
    with_rare(send, |rare| {
        rare.kin.get_or_insert_default().parent = Some(Parent {
            key: KEY.into(),
            id: id.as_bytes().into(),
            on_dead,
        });
    })
}

fn child(id: &'static str, of: &str) -> Send<'static> {
    child_of(named(id), of, OnFail::Hold)
}

/// The reports of the last operations to parents, in the order of the sets.
fn news(b: &mut Fixture) -> Vec<News> {
    let mut reports = std::mem::take(&mut b.reports);
    reports.extend(b.queue.take_owed(KEY).unwrap_or_default().reports);
    reports
}

fn count(b: &mut Fixture, news: Vec<News>, dies_later: bool) -> Done {
    let of = news.into_iter().map(|news| CountedOne {
        id: news.id.into_vec().into(),
        delta: news.delta,
        dies_later,
    });
    let counted = Counted {
        from: KEY.into(),
        of: of.collect(),
    };
    let moment = crate::Moment::at_ms(b.now);
    b.queue.apply(&Op::Children(counted), moment).unwrap()
}

/// Counts the reports of the last operations at the parents, as the server does.
fn tell(b: &mut Fixture) {
    loop {
        let news = news(b);
        if news.is_empty() {
            break;
        }
        count(b, news, false);
    }
    assert_eq!(validate(&b.queue), Ok(()));
}

fn sent(b: &mut Fixture, send: Send<'static>) -> Seq {
    let seq = b.send(send);
    tell(b);
    seq
}

fn counts(b: &Fixture, seq: Seq) -> [u64; 5] {
    b.queue
        .message(seq)
        .unwrap()
        .children()
        .unwrap()
        .counts
        .all()
}

/// Delivers the next message and acks it.
fn finish(b: &mut Fixture) -> Seq {
    let (seq, receipt) = b.fetch(Fetch::one())[0];
    b.ack(&[receipt]);
    tell(b);
    seq
}

fn fixture() -> Fixture {
    Fixture::new(Settings {
        retries: 0,
        ..Settings::default()
    })
}

#[test]
fn a_parent_that_is_to_die_and_is_cancelled_first_does_not_die() {
    let mut b = fixture();
    let p = sent(&mut b, parent("p", 2));
    kill(&mut b, child_of(named("a"), "p", OnFail::Die));
    let told = news(&mut b);
    count(&mut b, told, true);
    let moment = crate::Moment::at_ms(b.now);
    let cancel = Op::Cancel {
        ids: vec![b"p".into()],
    };
    b.queue.apply(&cancel, moment).unwrap();
    b.wait(0);
    assert_eq!(b.state(p), None);
    assert_eq!(validate(&b.queue), Ok(()));
}

#[test]
fn children_of_nobody_or_of_a_parent_that_was_let_go_change_nothing() {
    let mut b = fixture();
    let a = sent(&mut b, child("a", "p"));
    let p = sent(&mut b, parent("p", 1));
    assert_eq!(finish(&mut b), a);
    assert_eq!(
        (counts(&b, p), b.state(p)),
        ([1, 0, 0, 0, 0], Some(State::Ready))
    );
    sent(&mut b, child("b", "p"));
    b.cancel("b");
    tell(&mut b);
    assert_eq!(counts(&b, p), [1, 0, 0, 0, 0]);
    sent(&mut b, child("c", "gone"));
    b.cancel("c");
    let told = news(&mut b);
    b.queue.take_effects();
    assert_eq!(count(&mut b, told, false), Done::Count(0));
    assert!(!b.queue.take_effects().changed, "nothing is replicated");
}

#[test]
fn options_of_kin_are_stored_only_as_far_as_they_are_needed() {
    let both = child_of(parent("x", 4), "p", OnFail::Hold);
    let stored = both.choices.stored().unwrap();
    assert_eq!(
        (stored.parent(), stored.children().map(|of| of.total)),
        (None, Some(4))
    );
    assert_eq!(child("a", "p").choices.stored(), None);
    assert_eq!(Kin::default().children, None);
    assert_eq!(ChildCounts::default().ended(), 0);
    assert!(!Choices::default()
        .children()
        .is_some_and(Children::have_ended));
}
