//! Bulk operations in slices: more than two messages are many here.

use super::fixture::{kill, later, named, new_message, with_ttl, Fixture};
use super::slices::{finish, in_slices, left, populated, purge, slice, with_priority, GROUPS};
use crate::message::state::State;
use crate::op::{Fetch, GroupChanges, NackKind, Op, Redrive, Send};
use crate::queue::bulk::Step;
use crate::settings::{OnDead, Settings};
use crate::Seq;

#[test]
fn each_state_goes_in_slices_and_nothing_else_does() {
    for group in [None, Some("g")] {
        for state in State::ALL.into_iter().filter(|s| *s != State::Blocked) {
            for of in [None, group] {
                let mut b = populated(group);
                assert_eq!(left(&b), 24);
                let op = purge(Some(state), of);
                assert_eq!(in_slices(&mut b, &op), (3, 2), "{state:?} of {of:?}");
                assert_eq!((b.queue.count(state), left(&b)), (0, 21), "{state:?}");
            }
        }
    }
}

#[test]
fn blocked_messages_go_in_slices_and_ready_ones_stay() {
    for of in [None, Some("a")] {
        let mut b = Fixture::new(Settings::default());
        for _ in 0..4 {
            b.to("a");
        }
        assert_eq!(b.take(1).len(), 1);
        for _ in 0..3 {
            b.to("b");
            b.plain();
        }
        assert_eq!(b.queue.count(State::Blocked), 3);
        let (counted, slices) = in_slices(&mut b, &purge(Some(State::Blocked), of));
        assert_eq!((counted, b.queue.count(State::Ready)), (3, 6));
        assert!(slices > 1);
    }
}

#[test]
fn a_group_goes_in_slices_and_others_stay() {
    let mut b = populated(Some("g"));
    b.to("h");
    let (counted, slices) = in_slices(&mut b, &purge(None, Some("g")));
    assert_eq!((counted, left(&b)), (24, 1));
    assert!(slices >= 11, "{slices}");
    assert!(b.queue.state.groups.find(b"g").is_none());
}

#[test]
fn few_messages_are_purged_or_redriven_at_once() {
    let mut b = Fixture::new(Settings::default());
    for _ in 0..2 {
        kill(&mut b, new_message(Some("g")));
    }
    for _ in 0..2 {
        b.plain();
    }
    for _ in 0..9 {
        b.send(later(None, 50));
    }
    for op in [
        purge(Some(State::Ready), None),
        purge(Some(State::Dead), None),
        purge(None, Some("g")),
        purge(None, Some("nobody")),
        // The whole queue.
        purge(None, None),
        Op::Redrive(Redrive::Oldest(u64::MAX)),
        Op::Redrive(Redrive::Ids(Vec::new())),
        Op::Tick,
    ] {
        assert!(b.queue.plan(&op, b.now).is_none(), "{op:?}");
    }
    let delayed = purge(Some(State::Delayed), None);
    assert!(b.queue.plan(&delayed, b.now).is_some());
    kill(&mut b, with_priority(-1));
    for (most, is_short) in [(2, true), (3, false), (u64::MAX, false)] {
        let op = Op::Redrive(Redrive::Oldest(most));
        assert_eq!(b.queue.plan(&op, b.now).is_none(), is_short, "{most}");
    }
}

#[test]
fn what_is_due_is_purged_as_that_though_time_was_not_worked_off() {
    for (state, count) in [(State::Ready, 15), (State::Delayed, 3)] {
        let mut b = Fixture::new(Settings {
            group_concurrency: 10,
            ..Settings::default()
        });
        for _ in 0..3 {
            for group in GROUPS {
                b.send(later(Some(group), 10));
            }
            b.send(later(None, 20));
        }
        b.now += 10;
        b.queue.advance(b.now, 3);
        let (counted, _) = in_slices(&mut b, &purge(Some(state), None));
        assert_eq!((counted, left(&b)), (count, 18 - count), "{state:?}");
        b.wait(100);
        assert_eq!(b.take(99).len() as u64, 18 - count);
    }
}

#[test]
fn what_is_sent_meanwhile_stays_and_does_not_make_a_purge_endless() {
    for state in [State::Delayed, State::Ready] {
        for group in [None, Some("g")] {
            let mut b = Fixture::new(Settings::default());
            let send = |b: &mut Fixture, ms, priority| {
                let send = match state {
                    State::Delayed => later(group, ms),
                    _ => new_message(group),
                };
                b.send(Send { priority, ..send })
            };
            for _ in 0..20 {
                send(&mut b, 500, 0);
            }
            let mut plan = b.queue.plan(&purge(Some(state), group), b.now).unwrap();
            let (mut counted, mut after) = (0, Vec::new());
            // The number of messages that come before the remaining ones is the number of those
            // that go away.
            while let Some(count) = slice(&mut b, &mut plan) {
                counted += count;
                if after.len() < 100 {
                    after.push(send(&mut b, 100, -1));
                    after.push(send(&mut b, 100, -1));
                }
            }
            assert_eq!(counted, 20);
            b.wait(1000);
            assert_eq!(left(&b), after.len() as u64, "{state:?} {group:?}");
            assert!(after.len() < 100, "it takes as long as more come");
        }
    }
}

#[test]
fn a_message_that_moves_to_where_the_purge_has_been_is_removed_all_the_same() {
    let mut b = Fixture::new(Settings::default());
    for _ in 0..6 {
        b.send(later(None, 500));
    }
    let moved = b.send(Send {
        due: crate::op::DueTime::After(900),
        ..named("moved")
    });
    let op = purge(Some(State::Delayed), None);
    let mut plan = b.queue.plan(&op, b.now).unwrap();
    assert_eq!(slice(&mut b, &mut plan), Some(2));
    b.apply(&Op::Reschedule {
        id: b"moved".into(),
        due: crate::op::DueTime::After(10),
    });
    assert_eq!(finish(&mut b, &mut plan).0, 5);
    assert_eq!((b.state(moved), left(&b)), (None, 0));
}

#[test]
fn a_fetch_between_two_slices_gets_what_is_not_removed_yet() {
    let mut b = Fixture::new(Settings::default());
    let sent: Vec<Seq> = (0..6).map(|_| b.plain()).collect();
    let op = purge(Some(State::Ready), None);
    let mut plan = b.queue.plan(&op, b.now).unwrap();
    assert_eq!(slice(&mut b, &mut plan), Some(2));
    assert_eq!(b.take(1), [sent[2]]);
    assert_eq!(finish(&mut b, &mut plan).0, 3);
    assert_eq!((left(&b), b.state(sent[2])), (1, Some(State::Running)));
}

#[test]
fn those_who_wait_for_a_message_are_told_in_the_slice_that_removes_it() {
    let mut b = Fixture::new(Settings::default());
    let ids = ["a", "b", "c", "d"];
    for id in ids {
        b.send(named(id));
        b.queue.watch(id.as_bytes());
    }
    let op = purge(Some(State::Ready), None);
    let mut plan = b.queue.plan(&op, b.now).unwrap();
    for told in [&ids[..2], &ids[2..]] {
        b.queue.take_effects();
        assert_eq!(slice(&mut b, &mut plan), Some(2));
        let endings = b.queue.take_effects().told.unwrap_or_default().endings;
        let seen: Vec<_> = endings.iter().map(|e| (&*e.id, e.end.is_none())).collect();
        let expected: Vec<_> = told.iter().map(|id| (id.as_bytes(), true)).collect();
        assert_eq!(seen, expected);
    }
}

#[test]
fn the_dead_are_redriven_oldest_first_and_only_those_that_were_there() {
    let mut b = Fixture::new(Settings::default());
    let sent: Vec<Seq> = (0..9).map(|_| kill(&mut b, new_message(None))).collect();
    let some = Op::Redrive(Redrive::Oldest(7));
    assert_eq!(in_slices(&mut b, &some), (7, 4));
    assert_eq!(b.queue.count(State::Dead), 2);
    assert_eq!(b.take(9), sent[..7]);
    // Each message dies again as soon as it is redriven.
    for group in GROUPS {
        kill(&mut b, new_message(Some(group)));
    }
    let all = Op::Redrive(Redrive::Oldest(u64::MAX));
    let mut plan = b.queue.plan(&all, b.now).unwrap();
    let mut counted = 0;
    while let Some(count) = slice(&mut b, &mut plan) {
        counted += count;
        let got = b.fetch(Fetch {
            count: 9,
            ..Fetch::one()
        });
        let receipts: Vec<_> = got.iter().map(|(_, receipt)| *receipt).collect();
        b.nack(&receipts, NackKind::Fatal);
    }
    assert_eq!((counted, b.queue.count(State::Dead)), (7, 7));
}

#[test]
fn a_redrive_ends_where_others_have_taken_the_dead_away() {
    let mut b = Fixture::new(Settings::default());
    for _ in 0..6 {
        kill(&mut b, new_message(None));
    }
    let all = Op::Redrive(Redrive::Oldest(u64::MAX));
    let mut plan = b.queue.plan(&all, b.now).unwrap();
    assert_eq!(slice(&mut b, &mut plan), Some(2));
    b.apply(&purge(Some(State::Dead), None));
    assert_eq!(finish(&mut b, &mut plan), (0, 0));
}

#[test]
fn groups_go_on_in_the_slice_that_removes_what_held_them() {
    let mut b = Fixture::new(Settings {
        on_dead: OnDead::Block,
        ..Settings::default()
    });
    for group in GROUPS {
        kill(&mut b, new_message(Some(group)));
    }
    let second = GROUPS.map(|group| b.to(group));
    assert!(b.take(5).is_empty());
    let op = purge(Some(State::Dead), None);
    let mut plan = b.queue.plan(&op, b.now).unwrap();
    for ready in [2, 4, 5] {
        slice(&mut b, &mut plan);
        assert_eq!(b.queue.count(State::Ready), ready);
    }
    assert_eq!(b.take(5), second);
}

#[test]
fn all_goes_in_slices_where_many_groups_have_settings() {
    let mut b = Fixture::new(Settings {
        on_dead: OnDead::Block,
        group_concurrency: 2,
        dedup: 1000,
        dead_count: 3,
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
    b.send(named("taken"));
    let got = b.fetch(Fetch::one());
    b.ack(&[got[0].1]);
    let running = GROUPS.map(|group| b.to(group));
    assert_eq!(b.take(5), running);
    for group in GROUPS {
        kill(&mut b, new_message(Some(group)));
        b.to(group);
        b.send(later(Some(group), 100));
    }
    b.plain();
    let count = left(&b);
    let mut plan = b.queue.plan(&purge(None, None), b.now).unwrap();
    assert_eq!(slice(&mut b, &mut plan), Some(2));
    let meanwhile = b.plain();
    assert_eq!(finish(&mut b, &mut plan).0, count - 2);
    assert_eq!(b.take(9), [meanwhile]);
    assert_eq!(b.send(named("taken")), meanwhile + 1);
    assert_eq!(b.take(9).len(), 1);
    for group in GROUPS {
        let sent = b.to(group);
        assert_eq!(b.take(5), [sent], "nothing holds {group}");
        let ix = b.queue.state.groups.find(group.as_bytes()).unwrap();
        let settings = b.queue.state.groups.get(ix).unwrap().ext().settings.clone();
        assert_eq!(settings.unwrap().weight, 7);
    }
}

#[test]
fn a_purge_looks_at_a_bounded_number_of_messages_for_those_it_removes() {
    let mut b = Fixture::new(Settings::default());
    // Blocked messages, then ready ones, which are between them by time.
    for _ in 0..100 {
        b.to("a");
    }
    assert_eq!(b.take(1).len(), 1);
    for _ in 0..3 {
        b.to("b");
    }
    let op = purge(Some(State::Ready), None);
    let mut plan = b.queue.plan(&op, b.now).unwrap();
    assert_eq!(plan.next(&b.queue, 2, b.now), Step::Look);
    let (counted, slices) = finish(&mut b, &mut plan);
    assert_eq!((counted, b.queue.count(State::Blocked)), (3, 99));
    assert!(slices >= 99 / 32, "{slices}");
}

#[test]
fn an_expired_message_that_is_not_dead_yet_is_not_ready() {
    let mut b = Fixture::new(Settings::default());
    for _ in 0..3 {
        b.send(with_ttl(new_message(None), 5));
        b.plain();
    }
    b.now += 5;
    assert_eq!(in_slices(&mut b, &purge(Some(State::Ready), None)).0, 3);
    b.wait(0);
    assert_eq!((b.queue.count(State::Dead), left(&b)), (3, 3));
}
