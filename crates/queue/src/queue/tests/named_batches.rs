//! Named batches: the messages that they hold, the time of their release, and the counts.

use super::fixture::{new_message, Fixture};
use crate::error::Error;
use crate::message::after::{After, Batching, Counts, OnFail};
use crate::message::state::State;
use crate::message::{Choices, RareChoices};
use crate::op::{AckSend, Done, Fetch, NackKind, Op, Send, Sent};
use crate::queue::bulk::Step;
use crate::queue::inspect::explain::Code;
use crate::queue::rebuild::validate;
use crate::settings::{Clock, Settings};
use crate::{Moment, Queue, Seq};

/// Adds BATCH and AFTER to a message.
pub fn with(
    send: Send<'static>,
    batch: Option<&str>,
    after: Option<(&str, OnFail)>,
) -> Send<'static> {
    let bytes = |name: &str| Box::from(name.as_bytes());
    let batching = Batching {
        park: None,
        batch: batch.map(bytes),
        after: after.map(|(name, on_fail)| After {
            batch: bytes(name),
            on_fail,
            counts: Counts::default(),
        }),
    };
    Send {
        choices: Choices {
            rare: Some(Box::new(RareChoices {
                batching: Some(Box::new(batching)),
                ..RareChoices::default()
            })),
            ..send.choices.clone()
        },
        ..send
    }
}

fn of(batch: &str) -> Send<'static> {
    with(new_message(None), Some(batch), None)
}

fn after(batch: &str, on_fail: OnFail) -> Send<'static> {
    with(new_message(None), None, Some((batch, on_fail)))
}

fn ring(batch: &str, after: &str) -> Send<'static> {
    with(new_message(None), Some(batch), Some((after, OnFail::Hold)))
}

fn fixture() -> Fixture {
    Fixture::new(Settings::default())
}

/// Sends one message after a batch for each ONFAIL.
fn of_each_kind(b: &mut Fixture) -> [Seq; 3] {
    OnFail::ALL.map(|on_fail| b.send(after("b", on_fail)))
}

fn states(b: &Fixture, seqs: [Seq; 3]) -> [Option<State>; 3] {
    seqs.map(|seq| b.state(seq))
}

fn reject_next(b: &mut Fixture) {
    let got = b.fetch(Fetch::one());
    b.nack(&[got[0].1], NackKind::Fatal);
}

#[test]
fn explain_names_the_batch_and_a_long_ring() {
    let mut b = fixture();
    // A ring of more batches than SEND searches.
    let names: Vec<String> = (0..100).map(|n| format!("b{n}")).collect();
    for name in &names {
        b.send(of(name));
    }
    let mut last = 0;
    for n in 0..100 {
        last = b.send(ring(&names[n], &names[(n + 1) % 100]));
    }
    let message = b.queue.message(last).unwrap();
    let id = b.queue.id_of(last, message).to_box();
    let why = b.queue.explain(&id, b.now).unwrap();
    assert_eq!(
        (why.code, why.by.as_deref()),
        (Code::BatchOpen, Some(&b"b0"[..]))
    );
    assert!(why.why.contains("'b0', 'b1'"), "{}", why.why);
}

/// A purge in slices goes through a state more than once. It leaves what it has
/// released.
#[test]
fn a_purge_in_slices_leaves_what_it_releases() {
    let mut b = fixture();
    for _ in 0..10 {
        b.send(of("b"));
    }
    let held = of_each_kind(&mut b);
    let purge = Op::Purge {
        state: Some(State::Ready),
        group: None,
    };
    let mut plan = b.queue.plan(&purge, b.now).unwrap();
    let mut removed = 0;
    loop {
        match plan.next(&b.queue, 3, b.now) {
            Step::Do(op) => match b.apply(&op) {
                Done::Count(count) => removed += count,
                other => panic!("{other:?}"),
            },
            Step::Look => {}
            Step::Done => break,
        }
    }
    assert_eq!(removed, 10);
    assert_eq!(states(&b, held), [Some(State::Ready); 3]);
}

/// Very many messages are released, a few in each step. A copy in the middle of that is
/// as the queue itself.
#[test]
fn many_held_messages_are_released_in_slices() {
    let mut b = fixture();
    b.send(of("b"));
    let held: Vec<Seq> = (0..200).map(|_| b.send(after("b", OnFail::Hold))).collect();
    let got = b.fetch(Fetch::one());
    let ack = Op::Ack {
        receipts: [got[0].1].into_iter().collect(),
        result: None,
    };
    b.queue.apply(&ack, Moment::at_ms(b.now)).unwrap();
    assert_eq!(b.queue.count(State::Held), 200 - 64);
    assert_eq!(b.queue.next_wake(b.now, false), Some(0));
    let mut blocks = Vec::new();
    b.queue.save(&mut |block| blocks.push(block.to_vec()));
    let mut blocks = blocks.into_iter();
    let mut loaded = Queue::load(Queue::VERSION, &mut || blocks.next()).unwrap();
    assert_eq!(validate(&b.queue), Ok(()));
    for queue in [&mut b.queue, &mut loaded] {
        assert!(!queue.advance(b.now + 1, 1).caught_up);
        assert_eq!(queue.count(State::Held), 200 - 128);
        while !queue.advance(b.now + 1, 1).caught_up {}
        assert_eq!(queue.peek(300, b.now + 1), held);
    }
}

#[test]
fn a_manual_queue_releases_all_at_once() {
    let mut queue = Queue::new(Settings::default(), Clock::Manual(0), 0);
    let moment = Moment::at_ms(0);
    queue.apply(&Op::Send(of("b")), moment).unwrap();
    for _ in 0..200 {
        let send = after("b", OnFail::Hold);
        queue.apply(&Op::Send(send), moment).unwrap();
    }
    let fetch = Op::fetch(Fetch {
        no_ack: true,
        ..Fetch::one()
    });
    queue.apply(&fetch, moment).unwrap();
    assert_eq!(queue.count(State::Ready), 200);
}

#[test]
fn a_member_without_other_options_has_no_extension() {
    let mut b = fixture();
    let seq = b.send(of("b"));
    assert!(b.queue.message(seq).unwrap().extension().is_none());
    assert_eq!(b.queue.batch_of(seq), Some(&b"b"[..]));
}

/// The first message of the command dies because of the dead message of the batch, and
/// displaces it from the dead messages that are kept. With that the batch has ended for
/// the second message.
#[test]
fn a_message_after_a_batch_that_its_own_command_has_ended_counts_nothing_of_it() {
    let mut b = Fixture::new(Settings {
        dead_count: 1,
        ..Settings::default()
    });
    b.send(Send {
        id: Some(b"cancelled".as_slice().into()),
        ..of("b")
    });
    let dead = b.send(of("b"));
    b.cancel("cancelled");
    reject_next(&mut b);
    assert_eq!(b.state(dead), Some(State::Dead));
    let mut two = after("b", OnFail::Die);
    two.payloads = smallvec::smallvec![&b"x"[..]; 2];
    let Done::Sent(sent) = b.apply(&Op::Send(two)) else {
        panic!("nothing was sent");
    };
    let [Sent::Added(first), Sent::Added(second)] = sent[..] else {
        panic!("{sent:?}");
    };
    let states = [dead, first, second].map(|seq| b.state(seq));
    assert_eq!(states, [None, Some(State::Dead), Some(State::Ready)]);
    let view = b.queue.view(second, b.now).unwrap();
    assert_eq!(view.after, Some((&b"b"[..], Counts::default())));
    assert_eq!(validate(&b.queue), Ok(()));
}

#[test]
fn an_acksend_to_a_queue_without_batches_may_not_make_a_ring_either() {
    let b = fixture();
    let op = AckSend {
        receipt: None,
        result: None,
        sends: vec![of("x"), of("y"), ring("x", "y"), ring("y", "x")],
        signals: Vec::new(),
    };
    let moment = Moment::at_ms(b.now);
    assert_eq!(b.queue.can_ack_send(&op, moment), Err(Error::Ring));
}
