//! Dead messages that hold their groups, and the commands that end the holds.

use super::approach::{approached, purge, GROUPS};
use super::bench::{kill, letter, with_ttl, Bench};
use crate::message::state::State;
use crate::op::{Done, GroupChanges, Op};
use crate::queue::approach::Approach;
use crate::queue::rebuild::validate;
use crate::settings::{OnDead, Settings};
use crate::Moment;

/// Groups of which each has a message and is held by a dead one. All those dead
/// messages but the last are pruned.
fn all_held_by_pruned_ones() -> Bench {
    let mut b = Bench::new(Settings {
        on_dead: OnDead::Block,
        dead_count: 1,
        ..Settings::default()
    });
    for group in GROUPS {
        kill(&mut b, letter(Some(group)));
        b.to(group);
    }
    b
}

#[test]
fn purging_the_queue_ends_the_holds_of_pruned_messages_at_once() {
    let mut b = all_held_by_pruned_ones();
    let weight = |b: &mut Bench, group: &'static str| {
        b.apply(&Op::GroupSet {
            group: group.as_bytes().into(),
            changes: GroupChanges {
                weight: Some(7),
                ..GroupChanges::default()
            },
        })
    };
    for group in &GROUPS[..3] {
        weight(&mut b, group);
    }
    let moment = Moment::at_ms(b.now);
    let all = purge(None, None);
    assert_eq!(b.queue.approach(&all, b.now), Approach::AtOnce);
    assert_eq!(b.queue.apply(&all, moment), Ok(Done::Count(6)));
    // The purge was not applied to the groups one by one yet, but clients must see
    // it.
    assert_eq!(validate(&b.queue), Ok(()));
    let names = |b: &Bench| -> Vec<_> {
        let groups = b.queue.groups(0, 100, None, b.now).1;
        groups.iter().map(|view| view.group.name.to_vec()).collect()
    };
    assert_eq!(names(&b).concat(), b"abc", "those with settings");
    let sent = [b.to("a"), b.to("e")];
    assert_eq!(b.take(9), sent);
    // A hold that begins after the purge must not be ended by it.
    kill(&mut b, letter(Some("b")));
    b.to("b");
    b.queue.sweep(usize::MAX);
    assert!(b.take(9).is_empty());
    assert_eq!(validate(&b.queue), Ok(()));
    assert_eq!(b.queue.groups.held_count(), 1);
}

#[test]
fn very_many_holds_of_a_group_are_freed_in_slices() {
    let mut b = Bench::new(Settings {
        on_dead: OnDead::Block,
        ..Settings::default()
    });
    for end in [
        purge(Some(State::Dead), Some("g")),
        purge(None, Some("g")),
        purge(Some(State::Dead), None),
        Op::Resume {
            group: Some(b"g".into()),
        },
    ] {
        for _ in 0..3000 {
            b.send(with_ttl(letter(Some("g")), 1));
        }
        b.wait(1);
        b.plain();
        let (_, group) = b.queue.groups.starting_at(0).next().unwrap();
        assert_eq!(group.unwrap().ext().holds.iter().count(), 3000);
        b.queue.apply(&end, Moment::at_ms(b.now)).unwrap();
        assert!(b.queue.has_discarded());
        let after = b.to("g");
        assert!(b.take(9).contains(&after));
        while b.queue.sweep(1) {}
        b.apply(&purge(None, None));
        while b.queue.sweep(1) {}
        assert_eq!(validate(&b.queue), Ok(()));
    }
}

#[test]
fn a_purge_of_dead_messages_does_not_wait_for_pruned_ones_and_keeps_their_holds() {
    let mut b = all_held_by_pruned_ones();
    assert_eq!(b.queue.count(State::Dead), 1);
    assert_eq!(approached(&mut b, &purge(Some(State::Dead), None)).0, 1);
    assert_eq!(approached(&mut b, &purge(Some(State::Dead), None)), (0, 1));
    assert_eq!(b.take(5).len(), 1, "the others are held on");
}
