//! A message that is purged is gone, though the content of a whole queue is freed later.

use super::fixture::{kill, later, new_message, with_ttl, Fixture};
use super::named_batches::with;
use super::slices::purge;
use crate::message::after::OnFail;
use crate::message::state::State;
use crate::op::{Done, DueTime, Fetch, GroupChanges, NackKind, NewSchedule, Op, Send};
use crate::queue::rebuild::validate;
use crate::schedule::recurrence::Recurrence;
use crate::schedule::{Missed, Overlap};
use crate::settings::{OnDead, Settings};
use crate::Moment;

#[test]
fn a_purged_message_does_not_keep_its_schedule_from_firing() {
    let mut b = Fixture::new(Settings::default());
    b.apply(&Op::Schedule(NewSchedule {
        name: b"s".as_slice().into(),
        rule: Recurrence::every(10, None, b.now).unwrap(),
        send: Send {
            due: DueTime::Now,
            ..new_message(None)
        },
        missed: Missed::Once,
        overlap: Overlap::Skip,
        limits: None,
    }));
    assert_eq!(b.wait(10).fired, 1);
    assert_eq!(b.wait(10).fired, 0);
    assert_eq!(b.apply(&purge(Some(State::Ready), None)), Done::Count(1));
    assert_eq!(b.wait(10).fired, 1);
}

/// The change is not replicated, so a replica would keep the old state.
#[test]
fn a_purge_that_removes_nothing_changes_nothing() {
    let mut b = Fixture::new(Settings::default());
    b.apply(&Op::GroupSet {
        group: b"g".as_slice().into(),
        changes: GroupChanges {
            weight: Some(3),
            ..GroupChanges::default()
        },
    });
    b.send(later(Some("g"), 50));
    b.queue.take_effects();
    for state in State::ALL.into_iter().filter(|s| *s != State::Delayed) {
        for group in [None, Some("g"), Some("nobody")] {
            assert_eq!(b.apply(&purge(Some(state), group)), Done::Count(0));
        }
    }
    assert_eq!(b.apply(&purge(None, Some("nobody"))), Done::Count(0));
    assert!(!b.queue.take_effects().changed);
    assert_eq!(b.apply(&purge(None, None)), Done::Count(1));
    assert!(b.queue.take_effects().changed);
    assert_eq!(b.apply(&purge(None, None)), Done::Count(0));
    assert!(!b.queue.take_effects().changed);
}

#[test]
fn a_purge_of_all_ends_what_pruned_messages_hold() {
    for group in [None, Some("g")] {
        let mut b = Fixture::new(Settings {
            on_dead: OnDead::Block,
            dead_count: 1,
            ..Settings::default()
        });
        kill(&mut b, new_message(Some("g")));
        kill(&mut b, new_message(None));
        b.apply(&purge(Some(State::Dead), None));
        assert_eq!(b.queue.state.groups.held_count(), 1);
        b.queue.take_effects();
        assert_eq!(b.apply(&purge(None, group)), Done::Count(0));
        assert!(b.queue.take_effects().changed);
        let sent = b.to("g");
        assert_eq!(b.take(9), [sent]);
        assert_eq!(validate(&b.queue), Ok(()));
    }
}

#[test]
fn a_group_of_which_all_was_purged_can_be_set_and_paused() {
    for has_set in [true, false] {
        let mut b = Fixture::new(Settings::default());
        let first = b.plain();
        b.to("g");
        assert_eq!(b.take(1), [first]);
        b.apply(&purge(Some(State::Ready), None));
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
fn groups_that_a_purge_lets_go_stand_by_the_purge_and_by_their_heads() {
    for kind in [Some(NackKind::Delay(50)), None] {
        let mut b = Fixture::new(Settings::default());
        let groups = ["a", "b", "c", "d"];
        let [_, seconds] = [(); 2].map(|()| groups.map(|group| b.to(group)));
        let got = b.fetch(Fetch {
            count: 4,
            ..Fetch::one()
        });
        let receipts: Vec<_> = got.iter().map(|(_, receipt)| *receipt).collect();
        let state = match kind {
            Some(kind) => {
                b.nack(&receipts, kind);
                State::Retry
            }
            None => State::Running,
        };
        assert_eq!(b.apply(&purge(Some(state), None)), Done::Count(4));
        // A message that comes after the purge is behind all messages that it releases.
        let plain = b.plain();
        assert_eq!(b.take(4), seconds);
        assert_eq!(b.take(4), [plain]);
    }
}

#[test]
fn what_time_does_is_the_same_however_much_is_freed() {
    let mut b = Fixture::new(Settings::default());
    for group in [None, Some("g"), Some("h")] {
        for _ in 0..200 {
            b.send(with_ttl(later(group, 10), 5));
        }
    }
    b.queue
        .apply(&purge(None, None), Moment::at_ms(b.now))
        .unwrap();
    b.send(later(Some("g"), 10));
    b.send(with_ttl(later(None, 10), 5));
    assert!(b.queue.has_garbage());
    let mut freed = b.queue.clone();
    assert!(!freed.has_garbage(), "a copy has none of it");
    let now = b.now + 100;
    for _ in 0..5 {
        assert_eq!(b.queue.advance(now, 2), freed.advance(now, 2));
    }
    let mut slices = 0;
    while b.queue.free_garbage(1) {
        slices += 1;
    }
    assert!(slices > 10, "{slices}");
    assert_eq!(b.queue.count(State::Dead), 1);
    assert_eq!(validate(&b.queue), Ok(()));
}

#[test]
fn the_batches_of_a_purged_queue_are_freed_in_slices() {
    const BATCHES: usize = 1000;
    let slices = |with_batches: bool| {
        let mut b = Fixture::new(Settings::default());
        for number in 0..BATCHES {
            let name = number.to_string();
            let member = || with(new_message(None), Some(&name), None);
            let held = with(new_message(None), None, Some((&name, OnFail::Hold)));
            b.send(if with_batches {
                member()
            } else {
                new_message(None)
            });
            b.send(if with_batches {
                held
            } else {
                new_message(None)
            });
        }
        let purged = b.apply(&purge(None, None));
        assert_eq!(purged, Done::Count(2 * BATCHES as u64));
        assert!(b.queue.batches().is_none());
        assert_eq!(validate(&b.queue), Ok(()));
        let mut slices = 1;
        while b.queue.free_garbage(1) {
            slices += 1;
        }
        slices
    };
    // Each batch and the set of its held messages are separate allocations.
    let of_batches = slices(true) - slices(false);
    assert!(of_batches >= BATCHES, "{of_batches}");
}
