//! What is purged is gone, though it is freed later.

use super::bench::{kill, later, letter, with_ttl, Bench};
use crate::message::state::State;
use crate::op::{Done, DueTime, Fetch, GroupChanges, NewSchedule, Op, Redrive, Send};
use crate::queue::rebuild::validate;
use crate::schedule::recurrence::Recurrence;
use crate::schedule::{Missed, Overlap};
use crate::settings::Settings;

#[test]
fn a_purged_message_does_not_keep_its_schedule_from_firing() {
    let mut b = Bench::new(Settings::default());
    b.apply(&Op::Schedule(NewSchedule {
        name: b"s".as_slice().into(),
        rule: Recurrence::every(10, None, b.now).unwrap(),
        send: Send {
            due: DueTime::Now,
            ..letter(None)
        },
        missed: Missed::Once,
        overlap: Overlap::Skip,
    }));
    assert_eq!(b.wait(10).fired, 1);
    assert_eq!(b.wait(10).fired, 0);
    let ready = Op::Purge {
        state: Some(State::Ready),
        group: None,
    };
    assert_eq!(b.apply(&ready), Done::Count(1));
    assert_eq!(b.wait(10).fired, 1);
}

/// Nobody is told of it, so a replica would keep what it changed.
#[test]
fn a_purge_that_removes_nothing_changes_nothing() {
    let mut b = Bench::new(Settings::default());
    b.apply(&Op::GroupSet {
        group: b"g".as_slice().into(),
        changes: GroupChanges {
            weight: Some(3),
            ..GroupChanges::default()
        },
    });
    let other = b.plain();
    b.to("g");
    let given = b.fetch(Fetch::one());
    assert_eq!(given[0].0, other);
    let purge = |state| Op::Purge {
        state: Some(state),
        group: None,
    };
    assert_eq!(b.apply(&purge(State::Ready)), Done::Count(1));
    let displaced = |b: &Bench| {
        let groups = b.queue.parts().lasting_groups();
        let parts = b.queue.parts();
        groups
            .iter()
            .all(|(ix, _)| parts.group(*ix).unwrap().displaced)
    };
    b.ack(&[given[0].1]);
    assert!(displaced(&b));
    for state in State::ALL {
        assert_eq!(b.apply(&purge(state)), Done::Count(0));
        assert!(displaced(&b), "{state:?}");
    }
}

#[test]
fn a_group_of_which_all_was_purged_can_be_set_and_paused() {
    for has_set in [true, false] {
        let mut b = Bench::new(Settings::default());
        let first = b.plain();
        b.to("g");
        assert_eq!(b.take(1), [first]);
        let ready = Op::Purge {
            state: Some(State::Ready),
            group: None,
        };
        b.apply(&ready);
        let group = || b"g".as_slice().into();
        let op = match has_set {
            true => Op::GroupSet {
                group: group(),
                changes: GroupChanges {
                    weight: Some(3),
                    ..GroupChanges::default()
                },
            },
            false => Op::Pause {
                group: Some(group()),
                ms: None,
            },
        };
        b.apply(&op);
        assert_eq!(b.queue.groups_listed(), 1);
    }
}

#[test]
fn purged_messages_that_fall_due_are_no_burst() {
    let mut b = Bench::new(Settings::default());
    b.send(with_ttl(letter(None), 8));
    b.send(later(None, 5));
    for _ in 0..9 {
        b.send(later(Some("g"), 2));
    }
    let group = Op::Purge {
        state: None,
        group: Some(b"g".as_slice().into()),
    };
    b.apply(&group);
    let mut swept = b.queue.clone();
    swept.sweep(usize::MAX);
    let now = b.now + 10;
    for queue in [&mut b.queue, &mut swept] {
        // In a burst the expiry would come first.
        let ticked = queue.advance(now, 1).ticked;
        assert_eq!((ticked.due, ticked.expired), (1, 0));
    }
}

#[test]
fn how_much_of_a_purge_is_freed_changes_no_step_of_time() {
    let mut b = Bench::new(Settings::default());
    b.send(later(Some("h"), 10));
    for _ in 0..10 {
        b.send(later(Some("g"), 10));
    }
    b.send(with_ttl(later(None, 10), 5));
    let group = Some(b"g".into());
    let purge = Op::Purge { state: None, group };
    assert_eq!(b.apply(&purge), Done::Count(10));
    let mut swept = b.queue.clone();
    swept.sweep(usize::MAX);
    let now = b.now + 100;
    for _ in 0..5 {
        assert_eq!(b.queue.advance(now, 2), swept.advance(now, 2));
    }
    assert_eq!(b.queue.count(State::Dead), 1);
}

#[test]
fn purged_records_are_not_redriven_whatever_else_is_still_to_be_freed() {
    let mut b = Bench::new(Settings::default());
    let dead: Vec<_> = ["g", "g", "g", "h"]
        .map(|group| kill(&mut b, letter(Some(group))))
        .into();
    for _ in 0..9 {
        b.send(later(None, 5));
    }
    let purge = |state, group: Option<&'static str>| Op::Purge {
        state: Some(state),
        group: group.map(|name| name.as_bytes().into()),
    };
    assert_eq!(b.apply(&purge(State::Dead, Some("g"))), Done::Count(3));
    assert_eq!(b.apply(&purge(State::Delayed, None)), Done::Count(9));
    let redrive = Op::Redrive(Redrive::Oldest(u64::MAX));
    assert_eq!(b.apply(&redrive), Done::Count(1));
    assert!(b.queue.has_discarded());
    assert_eq!(b.take(9), dead[3..]);
    assert_eq!(validate(&b.queue), Ok(()));
}
