//! What comes before a purge that would look at very many one by one: more than
//! two are many here.

use super::bench::{kill, later, letter, Bench};
use crate::message::state::State;
use crate::op::{Done, Fetch, GroupChanges, NackKind, Op, Redrive};
use crate::queue::approach::Approach;
use crate::queue::rebuild::validate;
use crate::settings::{OnDead, Settings};
use crate::{Moment, Seq};

pub const GROUPS: [&str; 5] = ["a", "b", "c", "d", "e"];

pub fn purge(state: Option<State>, group: Option<&'static str>) -> Op<'static> {
    Op::Purge {
        state,
        group: group.map(|name| name.as_bytes().into()),
    }
}

/// Does what comes before an operation, and then that; what it counted, and how
/// often it had to be asked.
pub fn approached(b: &mut Bench, op: &Op<'static>) -> (u64, u32) {
    let count = |done| match done {
        Done::Count(count) => count,
        other => panic!("{other:?}"),
    };
    let (mut op, mut counted) = (op.clone(), 0);
    for asked in 1..100 {
        let moment = Moment::at_ms(b.now);
        match b.queue.approach(&op, b.now) {
            Approach::AtOnce => {
                counted += count(b.queue.apply(&op, moment).unwrap());
                assert_eq!(validate(&b.queue), Ok(()));
                return (counted, asked);
            }
            Approach::First(of) => {
                let op = Op::PurgeSome { of, most: 2 };
                let some = count(b.queue.apply(&op, moment).unwrap());
                assert!((1..=2).contains(&some), "{some}");
                counted += some;
            }
            Approach::Parts(left) => {
                let part = Op::Redrive(Redrive::Oldest(2));
                let some = count(b.queue.apply(&part, moment).unwrap());
                assert_eq!(some, 2);
                counted += some;
                op = Op::Redrive(Redrive::Oldest(left - some));
            }
            Approach::Later => {
                b.queue.advance(b.now, 1);
                b.queue.sweep(1);
            }
        }
    }
    panic!("{op:?} is never done");
}

/// The number of messages in no matter which state.
fn left(b: &Bench) -> u64 {
    State::ALL.iter().map(|state| b.queue.count(*state)).sum()
}

#[test]
fn in_the_midst_of_a_burst_time_is_worked_off_first() {
    for (state, count) in [(State::Delayed, 0), (State::Ready, 5), (State::Blocked, 5)] {
        let mut b = Bench::new(Settings::default());
        for _ in 0..2 {
            for group in GROUPS {
                b.send(later(Some(group), 10));
            }
        }
        b.now += 10;
        b.queue.advance(b.now, 3);
        // Each group gives its first; the other one is blocked then.
        let given = match state {
            State::Blocked => 5,
            _ => 0,
        };
        for _ in 0..given {
            let fetch = Op::fetch(Fetch::one());
            b.queue.apply(&fetch, Moment::at_ms(b.now)).unwrap();
        }
        let count = match state {
            State::Ready => 2 * count,
            _ => count,
        };
        let (counted, asked) = approached(&mut b, &purge(Some(state), None));
        assert_eq!(counted, count, "{state:?}");
        assert!(asked > 1, "{state:?}");
        assert_eq!(left(&b), 10 - count);
        assert_eq!(b.queue.count(state), 0);
    }
}

#[test]
fn what_is_redriven_is_moved_first() {
    let mut b = Bench::new(Settings::default());
    for group in GROUPS {
        kill(&mut b, letter(Some(group)));
    }
    let all = Op::Redrive(Redrive::Oldest(u64::MAX));
    let moment = Moment::at_ms(b.now);
    assert_eq!(b.queue.apply(&all, moment), Ok(Done::Count(5)));
    let (counted, asked) = approached(&mut b, &purge(Some(State::Ready), None));
    assert_eq!((counted, left(&b)), (5, 0));
    assert!(asked > 1);
}

#[test]
fn some_of_the_dead_ones_are_redriven_a_few_at_a_time() {
    let mut b = Bench::new(Settings::default());
    let sent: Vec<Seq> = (0..9).map(|_| kill(&mut b, letter(None))).collect();
    let some = Op::Redrive(Redrive::Oldest(7));
    assert_eq!(approached(&mut b, &some), (7, 4));
    assert_eq!(b.queue.count(State::Dead), 2);
    assert_eq!(b.take(9), sent[..7]);
    // What is all that there is goes at once, unless more is still on its way.
    for group in GROUPS {
        kill(&mut b, letter(Some(group)));
    }
    let all = Op::Redrive(Redrive::Oldest(u64::MAX));
    assert_eq!(approached(&mut b, &all), (7, 1));
    let moment = Moment::at_ms(b.now);
    let three = Fetch {
        count: 3,
        ..Fetch::one()
    };
    let Ok(Done::Fetched(given)) = b.queue.apply(&Op::fetch(three), moment) else {
        panic!("nothing is given");
    };
    let fatal = Op::Nack {
        receipts: given.iter().map(|d| d.receipt).collect(),
        kind: NackKind::Fatal,
        error: None,
        random: 0,
    };
    assert_eq!(b.queue.apply(&fatal, moment), Ok(Done::Count(3)));
    let (counted, asked) = approached(&mut b, &all);
    assert_eq!((counted, b.queue.count(State::Dead)), (3, 0));
    assert!(asked > 1);
}

#[test]
fn the_leases_of_a_group_end_a_few_at_a_time() {
    for state in [None, Some(State::Running)] {
        let mut b = Bench::new(Settings {
            group_concurrency: 10,
            ..Settings::default()
        });
        let sent: Vec<Seq> = (0..9).map(|_| b.to("g")).collect();
        let other = b.to("h");
        let got = b.fetch(Fetch {
            count: 3,
            per_group: 2,
            ..Fetch::one()
        });
        assert_eq!(got.len(), 3);
        assert_eq!(b.take(5).len(), 5);
        let (counted, asked) = approached(&mut b, &purge(state, Some("g")));
        assert_eq!(counted, if state.is_none() { 9 } else { 7 });
        assert!(asked > 2);
        assert_eq!(b.queue.count(State::Running), 1);
        assert_eq!(b.state(other), Some(State::Running));
        let last = sent[8];
        assert_eq!(b.state(last), state.map(|_| State::Ready));
    }
}

#[test]
fn the_groups_that_dead_ones_hold_are_let_go_a_few_at_a_time() {
    let mut b = Bench::new(Settings {
        on_dead: OnDead::Block,
        ..Settings::default()
    });
    for group in GROUPS {
        kill(&mut b, letter(Some(group)));
    }
    let second = GROUPS.map(|group| b.to(group));
    assert!(b.take(5).is_empty());
    let (counted, asked) = approached(&mut b, &purge(Some(State::Dead), None));
    assert_eq!((counted, asked), (5, 3));
    assert_eq!(b.take(5), second);
}

#[test]
fn what_was_purged_before_is_freed_first() {
    // Records of a group while other purged messages are still to be freed.
    let mut b = Bench::new(Settings::default());
    for _ in 0..5 {
        kill(&mut b, letter(Some("g")));
        b.send(later(None, 5));
    }
    b.queue
        .apply(&purge(Some(State::Delayed), None), Moment::at_ms(b.now))
        .unwrap();
    let (counted, asked) = approached(&mut b, &purge(None, Some("g")));
    assert_eq!((counted, left(&b)), (5, 0));
    assert!(asked > 1);

    // A redrive after the purge of a group's dead messages.
    let mut b = Bench::new(Settings::default());
    for _ in 0..5 {
        kill(&mut b, letter(Some("g")));
    }
    let other = kill(&mut b, letter(Some("h")));
    b.queue
        .apply(&purge(Some(State::Dead), Some("g")), Moment::at_ms(b.now))
        .unwrap();
    let (counted, asked) = approached(&mut b, &Op::Redrive(Redrive::Oldest(u64::MAX)));
    assert_eq!(counted, 1);
    assert!(asked > 1);
    assert_eq!(b.take(9), [other]);
}

#[test]
fn what_still_counts_in_groups_leaves_them_first() {
    let mut b = Bench::new(Settings::default());
    for round in 0..2 {
        for group in GROUPS {
            b.to(group);
        }
        let got = b.fetch(Fetch {
            count: 5,
            ..Fetch::one()
        });
        let receipts: Vec<_> = got.iter().map(|(_, receipt)| *receipt).collect();
        b.nack(&receipts, NackKind::Delay(50));
        let retry = purge(Some(State::Retry), None);
        match round {
            0 => {
                let moment = Moment::at_ms(b.now);
                assert_eq!(b.queue.apply(&retry, moment), Ok(Done::Count(5)));
                // The groups go on before the next round.
                b.wait(0);
            }
            _ => assert_eq!(approached(&mut b, &retry).0, 5),
        }
    }
    assert_eq!(left(&b), 0);
}

#[test]
fn an_ordinary_purge_is_done_at_once() {
    let mut b = Bench::new(Settings::default());
    for _ in 0..4 {
        for group in GROUPS {
            b.to(group);
        }
        b.plain();
    }
    b.take(9);
    for state in State::ALL {
        let op = purge(Some(state), None);
        assert_eq!(b.queue.approach(&op, b.now), Approach::AtOnce);
        for group in GROUPS {
            let op = purge(Some(state), Some(group));
            assert_eq!(b.queue.approach(&op, b.now), Approach::AtOnce);
        }
    }
    let all = purge(None, None);
    assert_eq!(b.queue.approach(&all, b.now), Approach::AtOnce);
}

#[test]
fn all_goes_state_by_state_where_many_groups_have_settings() {
    let mut b = Bench::new(Settings {
        on_dead: OnDead::Block,
        group_concurrency: 2,
        ..Settings::default()
    });
    for group in GROUPS {
        b.apply(&Op::GroupSet {
            group: group.as_bytes().into(),
            changes: GroupChanges {
                weight: Some(7),
                ..GroupChanges::default()
            },
        });
    }
    let running = GROUPS.map(|group| b.to(group));
    assert_eq!(b.take(5), running);
    for group in GROUPS {
        kill(&mut b, letter(Some(group)));
        b.to(group);
        b.send(later(Some(group), 100));
    }
    b.plain();
    let count = left(&b);
    let (counted, asked) = approached(&mut b, &purge(None, None));
    assert_eq!((counted, left(&b)), (count, 0));
    assert_eq!(asked, 1);
    b.wait(0);
    for group in GROUPS {
        let sent = b.to(group);
        assert_eq!(b.take(5), [sent], "nothing holds {group}");
        let ix = b.queue.groups.find(group.as_bytes()).unwrap();
        let settings = b.queue.groups.get(ix).unwrap().ext().settings.clone();
        assert_eq!(settings.unwrap().weight, 7);
    }
}

#[test]
fn dead_ones_that_are_gone_already_are_not_purged_again() {
    let mut b = Bench::new(Settings::default());
    for _ in 0..5 {
        kill(&mut b, letter(Some("g")));
    }
    // Else there is nothing left, and all is thrown away.
    b.send(later(None, 1000));
    for (group, count) in [(Some("g"), 5), (None, 0)] {
        let op = purge(Some(State::Dead), group);
        let done = b.queue.apply(&op, Moment::at_ms(b.now));
        assert_eq!(done, Ok(Done::Count(count)));
        assert_eq!(validate(&b.queue), Ok(()));
    }
    let other = kill(&mut b, letter(None));
    b.queue.sweep(usize::MAX);
    let all = Op::Redrive(Redrive::Oldest(u64::MAX));
    assert_eq!(approached(&mut b, &all), (1, 1));
    assert_eq!(b.take(9), [other]);
}
