//! PARENT and CHILDREN: messages that wait for others of this or another queue.

mod random;
mod replaced;
mod steps;

use crate::message::after::{After, Batching, Counts, OnFail, Park};
use crate::message::kin::{ChildCounts, Children, Kin, News, Parent};
use crate::message::state::{Reason, State};
use crate::message::{Choices, RareChoices};
use crate::op::{AckSend, Counted, CountedOne, Done, DueTime, Fetch, Op, Redrive, Send};
use crate::queue::inspect::explain::Code;
use crate::queue::inspect::find::Search;
use crate::queue::rebuild::validate;
use crate::queue::tests::find::all;
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
fn a_parent_is_due_as_of_the_end_of_its_last_child() {
    let mut b = fixture();
    let p = sent(&mut b, parent("p", 3));
    assert_eq!(b.state(p), Some(State::Held));
    let all: Vec<Seq> = ["a", "b", "c"]
        .map(|id| sent(&mut b, child(id, "p")))
        .into();
    assert_eq!(b.queue.children_of(KEY, b"p", 0, 9), (None, all.clone()));
    assert_eq!(b.queue.children_of(KEY, b"p", all[0], 1).1, [all[1]]);
    b.wait(10);
    assert_eq!(finish(&mut b), all[0]);
    assert_eq!(b.cancel("b"), Some(State::Ready));
    tell(&mut b);
    let explained = b.queue.explain(b"p", b.now).unwrap();
    assert_eq!(explained.code, Code::ChildrenOpen);
    assert!(explained.why.contains("3 children, of which 2 have ended"));
    b.wait(10);
    assert_eq!(b.state(p), Some(State::Held));
    finish(&mut b);
    assert_eq!(b.queue.message(p).unwrap().due_at(), b.now);
    assert_eq!(counts(&b, p), [2, 1, 0, 0, 0]);
    assert_eq!(b.take(9), [p]);
    assert!(b.queue.siblings().is_none(), "no record was kept");
}

#[test]
fn a_dead_child_holds_its_parent_until_it_is_redriven_and_ends() {
    let mut b = fixture();
    let p = sent(&mut b, parent("p", 1));
    let a = kill(&mut b, child("a", "p"));
    tell(&mut b);
    assert_eq!(counts(&b, p), [0, 0, 1, 0, 1]);
    assert_eq!(b.state(p), Some(State::Held));
    assert!(b
        .queue
        .explain(b"p", b.now)
        .unwrap()
        .why
        .contains("1 are dead and hold it"));
    b.apply(&Op::Redrive(Redrive::Ids(vec![b"a".into()])));
    tell(&mut b);
    assert_eq!(counts(&b, p), [0; 5]);
    assert_eq!(finish(&mut b), a);
    assert_eq!(
        (counts(&b, p), b.state(p)),
        ([1, 0, 0, 0, 0], Some(State::Ready))
    );
}

#[test]
fn a_dead_child_that_is_cancelled_or_removed_holds_its_parent_no_longer() {
    for removes in [false, true] {
        let mut b = fixture();
        let p = sent(&mut b, parent("p", 1));
        kill(&mut b, child("a", "p"));
        tell(&mut b);
        let expected = match removes {
            false => {
                b.cancel("a");
                [0, 1, 0, 0, 0]
            }
            true => {
                b.apply(&Op::Purge {
                    state: Some(State::Dead),
                    group: None,
                });
                [0, 0, 1, 0, 0]
            }
        };
        tell(&mut b);
        assert_eq!((counts(&b, p), b.state(p)), (expected, Some(State::Ready)));
    }
}

#[test]
fn the_death_of_a_child_counts_with_go_and_is_the_end_of_its_parent_with_die() {
    for dies_later in [false, true] {
        let mut b = fixture();
        let p = sent(&mut b, parent("p", 2));
        kill(&mut b, child_of(named("a"), "p", OnFail::Go));
        tell(&mut b);
        assert_eq!(counts(&b, p), [0, 0, 1, 0, 0]);
        kill(&mut b, child_of(named("b"), "p", OnFail::Die));
        let told = news(&mut b);
        count(&mut b, told, dies_later);
        assert_eq!(validate(&b.queue), Ok(()));
        b.wait(0);
        assert_eq!(b.state(p), Some(State::Dead));
        assert_eq!(
            b.queue.view(p, b.now).unwrap().reason(),
            Some(Reason::Children)
        );
        assert_eq!(counts(&b, p), [0, 0, 2, 0, 0]);
        assert_eq!(validate(&b.queue), Ok(()));
        // The message is pending again and waits for no child.
        b.apply(&Op::Redrive(Redrive::Oldest(9)));
        assert_eq!(b.state(p), Some(State::Ready));
        assert_eq!(validate(&b.queue), Ok(()));
    }
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
fn a_purge_of_all_ends_the_children_that_have_not_ended() {
    let mut b = fixture();
    kill(&mut b, child("b", "p"));
    sent(&mut b, child("a", "p"));
    sent(&mut b, child_of(named("c"), "p", OnFail::Go));
    news(&mut b);
    b.apply(&Op::Purge {
        state: None,
        group: None,
    });
    let deltas: Vec<_> = news(&mut b)
        .iter()
        .map(|news| news.delta.counts())
        .collect();
    assert_eq!(deltas, [[0, 0, 0, 1, -1], [0, 0, 0, 1, 0]]);
    assert!(b.queue.siblings().is_none());
    assert_eq!(validate(&b.queue), Ok(()));
}

#[test]
fn a_message_waits_for_its_batch_then_for_its_children_then_for_a_signal() {
    let mut b = fixture();
    let batched = |id: &'static str| {
        with_rare(named(id), |rare| {
            rare.batching.get_or_insert_default().batch = Some(Box::from(*b"b"));
        })
    };
    sent(&mut b, batched("m"));
    let waits = with_rare(parent("p", 1), |rare| {
        rare.batching = Some(Box::new(Batching {
            batch: None,
            after: Some(After {
                batch: Box::from(*b"b"),
                on_fail: OnFail::Hold,
                counts: Counts::default(),
            }),
            park: Some(Park::default()),
        }));
    });
    let p = sent(&mut b, waits);
    assert_eq!(b.queue.explain(b"p", b.now).unwrap().code, Code::BatchOpen);
    finish(&mut b);
    assert_eq!(
        b.queue.explain(b"p", b.now).unwrap().code,
        Code::ChildrenOpen
    );
    sent(&mut b, child("a", "p"));
    finish(&mut b);
    assert_eq!(b.queue.explain(b"p", b.now).unwrap().code, Code::Parked);
    b.apply(&Op::Signal {
        id: b"p".into(),
        text: b"go".into(),
    });
    assert_eq!(b.state(p), Some(State::Ready));
    assert_eq!(validate(&b.queue), Ok(()));
}

#[test]
fn a_child_that_sends_children_counts_once_each() {
    let mut b = fixture();
    let p = sent(&mut b, parent("p", 2));
    sent(&mut b, child("a", "p"));
    let (_, receipt) = b.fetch(Fetch::one())[0];
    let next = AckSend {
        receipt: Some(receipt),
        result: None,
        sends: vec![child("b", "p")],
        signals: Vec::new(),
    };
    b.apply(&Op::AckSend(next));
    tell(&mut b);
    assert_eq!(
        (counts(&b, p), b.state(p)),
        ([1, 0, 0, 0, 0], Some(State::Held))
    );
    finish(&mut b);
    assert_eq!(b.state(p), Some(State::Ready));
}

#[test]
fn a_child_in_a_copy_does_not_count_again() {
    let mut b = fixture();
    sent(&mut b, parent("p", 1));
    sent(&mut b, child("a", "p"));
    let copy = b.queue.copy();
    assert!(copy.siblings().is_none());
    assert_eq!(validate(&copy), Ok(()));
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

#[test]
fn children_are_found_by_their_parent_whatever_their_ondead() {
    let mut b = fixture();
    sent(&mut b, parent("p", 3));
    let later = |send: Send<'static>| Send {
        due: DueTime::After(50),
        ..send
    };
    let a = sent(&mut b, later(child("a", "p")));
    sent(&mut b, later(child("b", "other")));
    let c = sent(&mut b, later(child_of(named("c"), "p", OnFail::Die)));
    sent(&mut b, later(named("d")));
    let found = |b: &Fixture, key: &'static [u8], id: &'static [u8]| {
        let search = Search {
            parent: Some((key, id)),
            ..all(State::Delayed)
        };
        b.queue.search(&search, b.now)
    };
    assert_eq!(found(&b, KEY, b"p"), (None, vec![a, c]));
    assert_eq!(found(&b, b"elsewhere", b"p"), (None, vec![]));
    assert_eq!(found(&b, KEY, b"d"), (None, vec![]));
    assert_eq!((b.queue.held_by_children(), b.queue.parked()), (1, 0));
    for id in ["a", "b", "c"] {
        b.cancel(id);
    }
    tell(&mut b);
    assert_eq!(found(&b, KEY, b"p"), (None, vec![]));
}
