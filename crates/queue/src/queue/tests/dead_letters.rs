//! DEADTO: messages that die are left for another queue, and are dead records until they have gone.

use super::fixture::{kill, named, new_message, with_ttl, Fixture};
use crate::dead_letters::{bit, DeadTo, Letter, Moved, Stays, MOST_TRACES};
use crate::message::state::{Reason, State};
use crate::message::Choices;
use crate::op::{Fetch, Op, Send};
use crate::queue::inspect::explain::Code;
use crate::queue::rebuild::validate;
use crate::settings::Settings;
use crate::{Moment, Queue, Seq};

fn settings(reasons: u8) -> Settings {
    Settings {
        lease: 10,
        retries: 0,
        dead_to: Some(Box::new(DeadTo {
            key: b"dead"[..].into(),
            reasons,
        })),
        ..Settings::default()
    }
}

/// The messages that the last operations have left for the other queue.
fn moving(b: &mut Fixture) -> Vec<Seq> {
    let (letters, _) = letters(b);
    letters.into_iter().map(|letter| letter.seq).collect()
}

fn letters(b: &mut Fixture) -> (Vec<Letter>, Option<Stays>) {
    let letters = b.queue.take_owed(b"from").and_then(|owed| owed.letters);
    letters.map_or((Vec::new(), None), |all| (all.letters, all.stays))
}

/// Tells the queue that these messages have gone.
fn gone(b: &mut Fixture, letters: &[Letter]) {
    let gone = letters.iter().map(|letter| (letter.seq, None));
    b.apply(&Op::Moved(Moved {
        gone: gone.collect(),
        stays: None,
    }));
    validate(&b.queue).unwrap();
}

/// Tells the queue that no message has gone.
fn stay(b: &mut Fixture, stays: Stays) {
    b.apply(&Op::Moved(Moved {
        gone: Vec::new(),
        stays: Some(stays),
    }));
    validate(&b.queue).unwrap();
}

fn header<'a>(letter: &'a Letter, name: &str) -> Option<&'a str> {
    let found = letter
        .headers
        .iter()
        .find(|(field, _)| **field == *name.as_bytes());
    found.map(|(_, value)| std::str::from_utf8(value).unwrap())
}

#[test]
fn a_message_is_in_one_queue_until_it_has_gone() {
    let mut b = Fixture::new(settings(0));
    let seq = kill(&mut b, named("a"));
    assert_eq!(b.state(seq), Some(State::Dead));
    let (sent, stays) = letters(&mut b);
    assert_eq!((sent.len(), stays), (1, None));
    assert_eq!(
        (&*sent[0].id, &*sent[0].payload),
        (&b"a"[..], &b"payload"[..])
    );
    assert_eq!(header(&sent[0], "dead-reason"), Some("rejected"));
    assert_eq!(header(&sent[0], "dead-attempts"), Some("1"));
    assert_eq!(header(&sent[0], "dead-error"), None);
    gone(&mut b, &sent);
    assert_eq!((b.state(seq), b.queue.totals().deaths.get()), (None, 1));
    assert_eq!(b.queue.dead_letters().unwrap().moved.get(), 1);
    assert_eq!(b.queue.explain(b"a", b.now).unwrap().code, Code::Moved);
    assert!(moving(&mut b).is_empty());
}

#[test]
fn no_operation_sees_a_message_on_its_way() {
    let mut b = Fixture::new(settings(0));
    let [one, two] = ["a", "b"].map(|id| b.send(named(id)));
    b.fetch(Fetch::one());
    b.now += 10;
    b.queue.advance(b.now, u64::MAX);
    assert!(b.queue.owes());
    assert_eq!((b.queue.find(b"a"), b.queue.count(State::Dead)), (None, 0));
    validate(&b.queue).unwrap();
    let (sent, _) = letters(&mut b);
    // The queue does not let a message go that is not on its way.
    b.apply(&Op::Moved(Moved {
        gone: vec![(one, None), (two, None), (99, None)],
        stays: None,
    }));
    assert_eq!(sent.len(), 1);
    assert_eq!((b.state(one), b.state(two)), (None, Some(State::Ready)));
}

#[test]
fn what_is_on_its_way_is_saved_as_such() {
    let mut b = Fixture::new(settings(0));
    b.send(named("a"));
    b.fetch(Fetch::one());
    b.now += 10;
    b.queue.advance(b.now, u64::MAX);
    let mut bytes = Vec::new();
    b.queue.save(&mut |block| bytes.extend_from_slice(block));
    let mut block = Some(bytes);
    b.queue = Queue::load(Queue::VERSION, &mut || block.take()).unwrap();
    assert!(b.queue.owes());
    let (sent, _) = letters(&mut b);
    gone(&mut b, &sent);
    assert!(!b.queue.owes());
}

#[test]
fn they_go_in_the_order_in_which_they_died() {
    let mut b = Fixture::new(settings(0));
    let late = b.send(with_ttl(new_message(None), 20));
    let early = b.send(with_ttl(new_message(None), 10));
    b.wait(50);
    let (sent, _) = letters(&mut b);
    let seqs: Vec<Seq> = sent.iter().map(|letter| letter.seq).collect();
    assert_eq!(seqs, [early, late]);
}

#[test]
fn a_sender_may_write_any_number_of_hops() {
    for (told, stays) in [
        ("18446744073709551615", true),
        ("9007199254740992", true),
        ("8", true),
        ("7", false),
        ("x", false),
        ("99999999999999999999", false),
    ] {
        let mut b = Fixture::new(settings(0));
        let header = |name: &str, value: &str| (name.as_bytes().into(), value.as_bytes().into());
        let choices = Choices {
            headers: Box::new([header("dead-from", "x"), header("dead-hops", told)]),
            ..Choices::default()
        };
        kill(
            &mut b,
            Send {
                choices,
                ..new_message(None)
            },
        );
        let (sent, why) = letters(&mut b);
        assert_eq!(
            (sent.len(), why),
            (usize::from(!stays), stays.then_some(Stays::Hops))
        );
    }
}

#[test]
fn dead_records_that_stay_are_not_pruned_for_those_on_their_way() {
    let mut b = Fixture::new(Settings {
        dead_count: 1,
        ..settings(bit(Reason::Rejected))
    });
    let stays = b.send(with_ttl(new_message(None), 5));
    b.wait(5);
    let goes = kill(&mut b, new_message(None));
    b.wait(5);
    assert_eq!(
        (b.state(stays), b.state(goes)),
        (Some(State::Dead), Some(State::Dead))
    );
    let (sent, _) = letters(&mut b);
    b.apply(&Op::Moved(Moved {
        gone: vec![],
        stays: Some(Stays::Closed),
    }));
    b.wait(1);
    assert_eq!((b.state(stays), b.state(goes)), (None, Some(State::Dead)));
    gone(&mut b, &sent);
}

#[test]
fn why_it_stays_is_told_until_another_goes() {
    let mut b = Fixture::new(settings(0));
    kill(&mut b, named("a"));
    stay(&mut b, Stays::Closed);
    let told = b.queue.explain(b"a", b.now).unwrap();
    assert!(told.why.contains("SENDS OFF"), "{}", told.why);
    assert_eq!(told.by.as_deref(), Some(&b"dead"[..]));
    kill(&mut b, named("b"));
    let (sent, _) = letters(&mut b);
    gone(&mut b, &sent);
    assert_eq!(b.queue.dead_letters().unwrap().stays, None);
}

#[test]
fn the_last_that_have_gone_are_remembered_over_a_snapshot() {
    let mut b = Fixture::new(settings(0));
    for id in ["a", "b", "c", "d"] {
        kill(&mut b, named(id));
        let (sent, _) = letters(&mut b);
        b.apply(&Op::Moved(Moved {
            gone: vec![(sent[0].seq, Some(b"new"[..].into()))],
            stays: Some(Stays::Type),
        }));
    }
    let known = b.queue.dead_letters().unwrap().clone();
    assert_eq!((known.traces.len(), known.moved.get()), (MOST_TRACES, 4));
    assert_eq!(b.queue.explain(b"a", b.now), None);
    assert!(b
        .queue
        .explain(b"d", b.now)
        .unwrap()
        .why
        .contains("its id is new"));
    let mut bytes = Vec::new();
    b.queue.save(&mut |block| bytes.extend_from_slice(block));
    let mut block = Some(bytes.clone());
    let loaded = Queue::load(Queue::VERSION, &mut || block.take()).unwrap();
    assert_eq!(loaded.dead_letters(), Some(&known));
    assert_eq!(loaded.settings(), b.queue.settings());
}

#[test]
fn a_replica_comes_to_the_same_by_the_two_entries() {
    let mut b = Fixture::new(settings(0));
    let mut twin = b.queue.clone();
    for id in ["a", "b"] {
        b.send(named(id));
        twin.apply(&Op::Send(named(id)), Moment::at_ms(b.now))
            .unwrap();
    }
    let moment = Moment::at_ms(b.now);
    let fetch = Op::fetch(Fetch {
        count: 2,
        ..Fetch::one()
    });
    for queue in [&mut b.queue, &mut twin] {
        queue.apply(&fetch, moment).unwrap();
    }
    b.now += 10;
    let moment = Moment::at_ms(b.now);
    let steps = b.queue.advance(b.now, u64::MAX).steps;
    b.queue.apply(&Op::Tick, moment).unwrap();
    let (sent, _) = letters(&mut b);
    let gone = sent.iter().map(|letter| (letter.seq, None)).collect();
    let moved = Op::Moved(Moved { gone, stays: None });
    b.queue.apply(&moved, moment).unwrap();
    twin.advance(b.now, steps);
    for op in [&Op::Tick, &moved] {
        twin.apply(op, moment).unwrap();
        twin.take_effects();
    }
    let saved = |queue: &Queue| {
        let mut bytes = Vec::new();
        queue.save(&mut |block| bytes.extend_from_slice(block));
        bytes
    };
    assert_eq!(saved(&b.queue), saved(&twin));
    assert_eq!(b.queue.count(State::Dead), 0);
}
