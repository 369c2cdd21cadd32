//! A closed queue takes no new messages, and all other work continues.

use super::fixture::{kill, named, new_message, Fixture};
use crate::message::state::State;
use crate::op::{AckSend, Done, DueTime, Fetch, NewSchedule, Op, Redrive, Send, Sent};
use crate::schedule::recurrence::Recurrence;
use crate::schedule::{Missed, Overlap};
use crate::settings::{Changes, Settings};
use crate::{Error, Moment};

fn set(fixture: &mut Fixture, closed: bool) {
    fixture.apply(&Op::Alter(Changes {
        closed: Some(closed),
        ..Changes::default()
    }));
}

fn refusal(fixture: &mut Fixture, send: Send) -> Option<Error> {
    let moment = Moment::at_ms(fixture.now);
    fixture.queue.apply(&Op::Send(send), moment).err()
}

fn replacing(id: &'static str) -> Send<'static> {
    Send {
        replace: true,
        ..named(id)
    }
}

#[test]
fn what_adds_a_message_is_refused_until_the_queue_is_open_again() {
    let mut b = Fixture::new(Settings::default());
    set(&mut b, true);
    assert_eq!(refusal(&mut b, new_message(None)), Some(Error::Closed));
    assert_eq!(refusal(&mut b, new_message(Some("g"))), Some(Error::Closed));
    assert_eq!(refusal(&mut b, replacing("a")), Some(Error::Closed));
    assert_eq!(b.queue.totals().sent.get(), 0);
    set(&mut b, false);
    assert_eq!(refusal(&mut b, new_message(None)), None);
}

#[test]
fn what_adds_no_message_goes_on() {
    let mut b = Fixture::new(Settings::default());
    let dead = kill(&mut b, new_message(None));
    b.send(named("waits"));
    set(&mut b, true);
    assert_eq!(refusal(&mut b, replacing("waits")), None);
    let taken = b.apply(&Op::Send(named("waits")));
    assert_eq!(taken, Done::Sent([Sent::Taken].into_iter().collect()));
    let absent = b.apply(&Op::Send(Send {
        if_group: true,
        ..new_message(Some("g"))
    }));
    assert_eq!(absent, Done::Sent([Sent::NoGroup].into_iter().collect()));
    assert_eq!(b.apply(&Op::Redrive(Redrive::Oldest(1))), Done::Count(1));
    assert_eq!(b.state(dead), Some(State::Ready));
    assert_eq!(b.take(9).len(), 2);
}

#[test]
fn an_acksend_into_it_is_refused_although_a_message_leaves() {
    let mut b = Fixture::new(Settings::default());
    b.send(named("a"));
    b.send(named("waits"));
    let receipt = b.fetch(Fetch::one())[0].1;
    set(&mut b, true);
    let moment = Moment::at_ms(b.now);
    let next = |send| AckSend {
        signals: Vec::new(),
        receipt: Some(receipt),
        result: None,
        sends: vec![send],
    };
    let can = b.queue.can_ack_send(&next(named("b")), moment);
    assert_eq!(can, Err(Error::Closed));
    // The id of the acked message is free then, but a message is added.
    let again = b.queue.can_ack_send(&next(replacing("a")), moment);
    assert_eq!(again, Err(Error::Closed));
    let same = b.queue.can_ack_send(&next(replacing("waits")), moment);
    assert_eq!(same, Ok(true));
    let mut stale = next(named("b"));
    stale.receipt = Some(1);
    assert_eq!(b.queue.can_ack_send(&stale, moment), Ok(false));
}

#[test]
fn firings_are_skipped_and_counted_and_the_schedule_goes_on() {
    let mut b = Fixture::new(Settings {
        closed: true,
        ..Settings::default()
    });
    b.apply(&Op::Schedule(NewSchedule {
        name: b"s".into(),
        rule: Recurrence::every(10, None, b.now).unwrap(),
        send: Send {
            due: DueTime::Now,
            ..new_message(None)
        },
        missed: Missed::Once,
        overlap: Overlap::Queue,
        limits: None,
    }));
    b.wait(35);
    let totals = *b.queue.totals();
    assert_eq!((totals.sent.get(), totals.skipped_fires.get()), (0, 3));
    set(&mut b, false);
    b.wait(10);
    assert_eq!(b.queue.totals().sent.get(), 1);
}
