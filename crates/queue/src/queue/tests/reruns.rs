//! REPLACE RERUN: the message that waits for the end of a run.

use super::fixture::{named, Fixture};
use crate::message::state::State;
use crate::op::{Done, Fetch, NackKind, Op, Send, Sent};
use crate::queue::rebuild::validate;
use crate::settings::{OnDead, Settings};
use crate::{Receipt, Seq};

fn rerun(payload: &'static [u8]) -> Send<'static> {
    Send {
        payloads: [payload].into_iter().collect(),
        replace: true,
        rerun: true,
        ..named("job")
    }
}

/// A message that runs, and another payload that waits for it.
fn begin(settings: Settings, group: Option<&'static str>) -> (Fixture, Seq, Receipt) {
    let mut b = Fixture::new(settings);
    let in_group = |send: Send<'static>| Send {
        group: group.map(|name| name.as_bytes().into()),
        ..send
    };
    let seq = b.send(in_group(named("job")));
    let [(_, receipt)] = b.fetch(Fetch::one())[..] else {
        panic!("nothing was delivered");
    };
    let sent = b.apply(&Op::Send(in_group(rerun(b"new"))));
    assert_eq!(sent, Done::Sent([Sent::Waits(seq)].into_iter().collect()));
    (b, seq, receipt)
}

fn payload(b: &Fixture) -> Option<&[u8]> {
    let message = b.queue.message(b.queue.find(b"job")?)?;
    Some(b.queue.content(message).payload)
}

#[test]
fn it_takes_the_place_of_a_dead_run_without_a_record() {
    let (mut b, seq, receipt) = begin(
        Settings {
            on_dead: OnDead::Block,
            ..Settings::default()
        },
        Some("g"),
    );
    b.nack(&[receipt], NackKind::Fatal);
    assert_eq!(b.queue.message(seq), None);
    assert_eq!(payload(&b), Some(&b"new"[..]));
    assert_eq!((b.queue.count(State::Dead), b.queue.live()), (0, 1));
    assert_eq!(b.queue.totals().deaths.get(), 1);
    assert_eq!(b.peek().len(), 1, "the dead message holds its group");
    assert_eq!(validate(&b.queue), Ok(()));
}

#[test]
fn a_lease_that_runs_out_for_the_last_time_ends_the_run() {
    let (mut b, _, receipt) = begin(
        Settings {
            lease: 10,
            retries: 0,
            ..Settings::default()
        },
        None,
    );
    assert_eq!(b.wait(10).dead, 1);
    assert_eq!(payload(&b), Some(&b"new"[..]));
    assert_eq!(b.ack(&[receipt]), Done::Count(0));
    assert_eq!(b.take(9).len(), 1);
}

#[test]
fn bytes_count_the_payload_that_a_retry_takes() {
    let (mut b, seq, receipt) = begin(Settings::default(), None);
    assert_eq!(b.queue.bytes(), b"payload".len() as u64);
    b.nack(&[receipt], NackKind::Silent);
    assert_eq!((b.queue.bytes(), payload(&b)), (3, Some(&b"new"[..])));
    assert_eq!(b.queue.message(seq).unwrap().rerun(), None);
    assert_eq!(validate(&b.queue), Ok(()));
}

#[test]
fn in_a_copy_the_message_has_come_back_with_what_waited() {
    let (b, seq, _) = begin(Settings::default(), None);
    let copy = b.queue.copy();
    let message = copy.message(seq).unwrap();
    assert_eq!(copy.content(message).payload, b"new");
    assert_eq!(validate(&copy), Ok(()));
    assert_eq!(validate(&b.queue), Ok(()));
}
