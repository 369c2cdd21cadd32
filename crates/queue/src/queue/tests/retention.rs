//! The records of messages that have ended: how long they are kept, and the consequences
//! for ids and groups.

use super::fixture::{named, new_message, with_ttl, Fixture};
use crate::message::state::{Reason, State};
use crate::op::{Done, Fetch, NackKind, Op, Redrive, Send, Sent};
use crate::queue::rebuild::validate;
use crate::settings::{Changes, OnDead, Settings};
use crate::Moment;

fn finish(fixture: &mut Fixture, send: Send) -> u64 {
    let seq = fixture.send(send);
    let got = fixture.fetch(Fetch::one());
    assert_eq!(got[0].0, seq);
    fixture.ack(&[got[0].1]);
    seq
}

fn is_taken(fixture: &mut Fixture, send: Send) -> bool {
    let done = fixture.apply(&Op::Send(send));
    done == Done::Sent([Sent::Taken].into_iter().collect())
}

fn alter(fixture: &mut Fixture, changes: Changes) {
    fixture.apply(&Op::Alter(changes));
}

#[test]
fn a_longer_dedup_does_not_take_ids_that_were_already_free() {
    let settings = Settings {
        dedup: 10,
        ..Settings::default()
    };
    let mut b = Fixture::new(settings);
    for id in ["a", "b", "c"] {
        finish(&mut b, named(id));
    }
    b.wait(10);
    alter(
        &mut b,
        Changes {
            dedup: Some(1000),
            ..Changes::default()
        },
    );
    for id in ["a", "b", "c"] {
        assert!(!is_taken(&mut b, named(id)));
    }
}

#[test]
fn messages_expired_by_a_shorter_ttl_die_now_not_in_the_past() {
    let settings = Settings {
        dead_retain: 20,
        ..Settings::default()
    };
    let mut b = Fixture::new(settings);
    let seq = b.plain();
    b.wait(100);
    alter(
        &mut b,
        Changes {
            ttl: Some(10),
            ..Changes::default()
        },
    );
    let view = b.queue.view(seq, b.now).unwrap();
    assert_eq!(view.state, State::Dead);
    assert_eq!(view.reason(), Some(Reason::Expired));
    assert_eq!(view.ended_at(), Some(b.now));
    assert_eq!(b.wait(20).pruned, 1);
}

#[test]
fn pruned_messages_that_hold_a_group_share_one_hold() {
    let mut b = Fixture::new(Settings {
        on_dead: OnDead::Block,
        dead_count: 2,
        ..Settings::default()
    });
    for _ in 0..50 {
        b.send(with_ttl(new_message(Some("g")), 1));
    }
    let seq = b.to("g");
    b.wait(1);
    assert_eq!(b.queue.count(State::Dead), 2);
    assert_eq!(b.fetch(Fetch::one()), []);
    // Two holds are those of the stored dead messages, and one is for all pruned ones.
    let (_, group) = b.queue.state.groups.starting_at(0).next().unwrap();
    assert_eq!(group.unwrap().ext().holds.iter().count(), 3);
    b.apply(&Op::Redrive(Redrive::Oldest(u64::MAX)));
    assert_eq!(b.fetch(Fetch::one()), []);
    b.apply(&Op::Resume {
        group: Some(b"g".into()),
    });
    assert_eq!(
        b.queue.state_of(b.queue.message(seq).unwrap(), b.now),
        State::Ready
    );
}

#[test]
fn a_noack_delivery_is_returned_even_if_its_record_is_pruned() {
    let mut b = Fixture::new(Settings {
        retain: 1000,
        retain_count: 2,
        ..Settings::default()
    });
    // The messages that are delivered last are sent first, because among records of
    // one moment the lowest numbers are pruned first.
    for priority in [1, 1, 0, 0, 0, 0] {
        b.send(Send {
            priority,
            ..new_message(None)
        });
    }
    for count in [4, 1, 1] {
        let fetch = Fetch {
            count,
            no_ack: true,
            ..Fetch::one()
        };
        b.wait(0);
        let done = b.queue.apply(&Op::fetch(fetch), Moment::at_ms(b.now));
        let Ok(Done::Fetched(given)) = done else {
            panic!("{done:?}")
        };
        assert_eq!(given.len() as u64, count);
        for one in &given {
            assert!(one.gone.is_some() || b.queue.message(one.seq).is_some());
        }
    }
    assert_eq!(b.queue.count(State::Finished), 2);
}

#[test]
fn a_group_is_refreshed_after_an_expired_message_left_no_record() {
    let mut b = Fixture::new(Settings {
        dead_count: 1,
        ..Settings::default()
    });
    b.plain();
    b.send(Send {
        id: Some(b"e".into()),
        ..with_ttl(new_message(Some("g")), 5)
    });
    let got = b.fetch(Fetch::one());
    // Due events are not processed here, so the message that died first is handled
    // last.
    let nack = Op::Nack {
        receipts: [got[0].1].into_iter().collect(),
        kind: NackKind::Fatal,
        error: None,
        random: 0,
        note: None,
        pause: None,
    };
    let cancel = Op::Cancel {
        ids: vec![b"e".into()],
    };
    for (op, ms) in [(nack, 8), (cancel, 10)] {
        b.queue.apply(&op, Moment::at_ms(b.now + ms)).unwrap();
    }
    assert_eq!(b.queue.count(State::Ready), 0);
    assert_eq!(validate(&b.queue), Ok(()));
}

#[test]
fn a_redriven_message_that_expired_before_its_move_is_dead() {
    let mut b = Fixture::new(Settings::default());
    for _ in 0..3 {
        b.send(with_ttl(new_message(Some("g")), 5));
    }
    b.send(Send {
        id: Some(b"e".into()),
        ..with_ttl(new_message(Some("g")), 5)
    });
    assert_eq!(b.wait(5).expired, 4);
    let redrive = Op::Redrive(Redrive::Oldest(u64::MAX));
    let done = b.queue.apply(&redrive, Moment::at_ms(b.now));
    assert_eq!(done, Ok(Done::Count(4)));
    let cancel = Op::Cancel {
        ids: vec![b"e".into()],
    };
    let done = b.queue.apply(&cancel, Moment::at_ms(b.now + 10));
    assert_eq!(done, Ok(Done::States(vec![Some(State::Dead)])));
    assert_eq!(validate(&b.queue), Ok(()));
}

#[test]
fn a_noack_delivery_shows_its_group_even_if_the_group_is_gone() {
    let mut b = Fixture::new(Settings::default());
    for _ in 0..3 {
        b.to("g");
    }
    let fetch = Fetch {
        count: 3,
        no_ack: true,
        ..Fetch::one()
    };
    let Done::Fetched(given) = b.apply(&Op::fetch(fetch)) else {
        panic!("a FETCH fetches");
    };
    assert_eq!(b.queue.state.groups.len(), 0);
    for one in &given {
        let view = b.queue.view_delivered(one, b.now).unwrap();
        assert_eq!(view.group, Some(&b"g"[..]));
    }
}
