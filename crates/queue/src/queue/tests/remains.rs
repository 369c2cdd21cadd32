//! What was purged but still counts in its group: more than two messages are
//! many here.

use super::bench::{letter, named, Bench, Got};
use crate::message::state::State;
use crate::op::{Done, Fetch, NackKind, Op};
use crate::queue::inspect::explain::{Code, Explanation};
use crate::queue::rebuild::validate;
use crate::settings::{Changes, Settings};
use crate::{Moment, Seq};

const GROUPS: [&str; 4] = ["a", "b", "c", "d"];

/// Two messages in each group, the first of which is delivered.
fn delivered(b: &mut Bench) -> (Vec<Got>, Vec<Seq>) {
    let [_, seconds] = [(); 2].map(|()| GROUPS.map(|group| b.to(group)));
    let got = b.fetch(Fetch {
        count: 4,
        ..Fetch::one()
    });
    assert_eq!(got.len(), 4);
    (got, seconds.to_vec())
}

/// The same, of which the delivered ones wait for another try.
fn failed(b: &mut Bench) -> (Vec<Got>, Vec<Seq>) {
    let (got, seconds) = delivered(b);
    let receipts: Vec<_> = got.iter().map(|(_, receipt)| *receipt).collect();
    b.nack(&receipts, NackKind::Delay(50));
    (got, seconds)
}

/// Purges a state and lets time do nothing yet.
fn purge(b: &mut Bench, state: State) -> Done {
    let op = Op::Purge {
        state: Some(state),
        group: None,
    };
    b.queue.apply(&op, Moment::at_ms(b.now)).unwrap()
}

fn each(made: fn(&mut Bench) -> (Vec<Got>, Vec<Seq>), state: State, then: fn(Bench, Vec<Seq>)) {
    let mut b = Bench::new(Settings::default());
    let (got, seconds) = made(&mut b);
    assert_eq!(purge(&mut b, state), Done::Count(4));
    assert_eq!(b.queue.count(state), 0);
    assert_eq!(b.queue.live(), 4);
    for (seq, _) in &got {
        assert_eq!(b.state(*seq), None);
    }
    assert!(!b.queue.remains.is_empty());
    assert_eq!(validate(&b.queue), Ok(()));
    then(b, seconds);
}

fn both(then: fn(Bench, Vec<Seq>)) {
    each(failed, State::Retry, then);
    each(delivered, State::Running, then);
}

#[test]
fn groups_go_on_one_after_the_other_and_stand_by_the_purge() {
    both(|mut b, seconds| {
        assert!(b.peek().is_empty());
        // One that comes after the purge stands behind all that it lets go.
        let plain = Op::Send(letter(None));
        b.queue.apply(&plain, Moment::at_ms(b.now)).unwrap();
        for left in (0..4).rev() {
            assert!(b.queue.has_work(b.now));
            b.queue.advance(b.now, 1);
            assert_eq!(b.queue.remains.len(), left);
            assert_eq!(b.queue.count(State::Blocked), left as u64);
        }
        assert!(b.queue.advance(b.now, 0).caught_up);
        assert_eq!(b.take(4), seconds);
        assert_eq!(b.take(4).len(), 1);
        assert_eq!(validate(&b.queue), Ok(()));
    });
}

#[test]
fn what_holds_a_group_meanwhile_is_told() {
    fn told(b: &Bench, seq: Seq) -> Explanation {
        let id = b.queue.id_of(seq, b.queue.message(seq).unwrap()).to_box();
        b.queue.explain(&id, b.now).unwrap()
    }
    each(failed, State::Retry, |b, seconds| {
        let told = told(&b, seconds[0]);
        assert_eq!((told.code, &told.by), (Code::BehindHead, &None));
        assert!(told.why.contains("purged"));
    });
    each(delivered, State::Running, |b, seconds| {
        let told = told(&b, seconds[0]);
        assert_eq!((told.code, &told.by), (Code::GroupBusy, &None));
        assert!(told.why.contains("purged"));
    });
}

#[test]
fn a_failed_message_that_was_purged_is_not_given_when_its_time_comes() {
    each(failed, State::Retry, |mut b, seconds| {
        b.now += 60;
        let fetch = Op::fetch(Fetch {
            count: 9,
            ..Fetch::one()
        });
        let mut given = Vec::new();
        // Time does nothing: each FETCH comes across what was purged itself.
        for _ in 0..9 {
            match b.queue.apply(&fetch, Moment::at_ms(b.now)).unwrap() {
                Done::Fetched(list) => given.extend(list.iter().map(|d| d.seq)),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(given, seconds);
    });
}

#[test]
fn a_second_purge_takes_only_what_is_there() {
    both(|mut b, _| {
        for state in [State::Retry, State::Running] {
            assert_eq!(purge(&mut b, state), Done::Count(0));
        }
        let group = Op::Purge {
            state: None,
            group: Some(b"b".as_slice().into()),
        };
        assert_eq!(
            b.queue.apply(&group, Moment::at_ms(b.now)).unwrap(),
            Done::Count(1)
        );
        assert_eq!(validate(&b.queue), Ok(()));
        let all = Op::Purge {
            state: None,
            group: None,
        };
        assert_eq!(b.apply(&all), Done::Count(3));
        assert!(b.queue.remains.is_empty());
        assert_eq!(validate(&b.queue), Ok(()));
    });
}

#[test]
fn what_was_purged_in_two_states_leaves_its_groups() {
    let mut b = Bench::new(Settings {
        group_concurrency: 2,
        ..Settings::default()
    });
    let (got, seconds) = delivered(&mut b);
    let receipts: Vec<_> = got.iter().take(3).map(|(_, receipt)| *receipt).collect();
    assert_eq!(b.take(3), seconds[..3]);
    b.nack(&receipts, NackKind::Delay(50));
    assert_eq!(purge(&mut b, State::Retry), Done::Count(3));
    assert_eq!(purge(&mut b, State::Running), Done::Count(4));
    assert_eq!(b.queue.remains.len(), 7);
    assert_eq!(validate(&b.queue), Ok(()));
    b.wait(0);
    assert_eq!(b.take(9), seconds[3..]);
    assert_eq!(validate(&b.queue), Ok(()));
}

#[test]
fn a_copy_has_nothing_of_it() {
    both(|b, _| {
        let copy = b.queue.copy();
        assert!(copy.remains.is_empty());
        assert_eq!(copy.count(State::Ready), 4);
        assert_eq!(validate(&copy), Ok(()));
    });
}

#[test]
fn an_id_that_was_purged_is_free_at_once() {
    let mut b = Bench::new(Settings::default());
    let named_one = b.send(crate::op::Send {
        group: Some(b"a".as_slice().into()),
        ..named("x")
    });
    let second = b.to("a");
    for group in ["b", "c"] {
        b.to(group);
    }
    let got = b.fetch(Fetch {
        count: 3,
        ..Fetch::one()
    });
    assert_eq!(got[0].0, named_one);
    assert_eq!(purge(&mut b, State::Running), Done::Count(3));
    let again = Op::Send(named("x"));
    b.queue.apply(&again, Moment::at_ms(b.now)).unwrap();
    // Its group is let go with it.
    assert_eq!(b.state(second), Some(State::Ready));
    assert_eq!(b.queue.remains.len(), 2);
    assert_eq!(validate(&b.queue), Ok(()));
}

#[test]
fn what_was_purged_does_not_expire() {
    let mut b = Bench::new(Settings::default());
    b.apply(&Op::Alter(Changes {
        ttl: Some(20),
        ..Changes::default()
    }));
    failed(&mut b);
    assert_eq!(purge(&mut b, State::Retry), Done::Count(4));
    b.now += 20;
    // The four behind them do.
    assert_eq!(b.queue.advance(b.now, u64::MAX).ticked.expired, 4);
    assert_eq!(b.queue.count(State::Dead), 4);
    assert_eq!(validate(&b.queue), Ok(()));
}
