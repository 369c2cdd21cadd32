//! Dead messages that hold their groups, and what ends that.

use super::approach::{approached, purge, GROUPS};
use super::bench::{kill, letter, with_ttl, Bench};
use crate::op::{Done, GroupChanges, Op};
use crate::queue::approach::Approach;
use crate::queue::parts::validate;
use crate::settings::{OnDead, Settings};
use crate::state::State;
use crate::Moment;

/// Groups of which each has a message, and is held by a dead one: all but one of
/// those are gone.
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
fn a_purge_of_all_ends_at_once_what_pruned_ones_hold() {
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
    // Nobody has told the groups of it yet, but it holds already.
    assert_eq!(validate(&b.queue), Ok(()));
    let names = |b: &Bench| -> Vec<_> {
        let groups = b.queue.groups(0, 100, None, b.now).1;
        groups.iter().map(|view| view.group.name.to_vec()).collect()
    };
    assert_eq!(names(&b).concat(), b"abc", "those with settings");
    let sent = [b.to("a"), b.to("e")];
    assert_eq!(b.take(9), sent);
    // A hold of later is none of those that were purged.
    kill(&mut b, letter(Some("b")));
    b.to("b");
    b.queue.sweep(usize::MAX);
    assert!(b.take(9).is_empty());
    assert_eq!(validate(&b.queue), Ok(()));
    assert_eq!(b.queue.groups.held_count(), 1);
}

#[test]
fn what_very_many_of_a_group_hold_is_freed_in_slices() {
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
fn what_was_pruned_holds_groups_and_is_not_waited_for() {
    let mut b = all_held_by_pruned_ones();
    assert_eq!(b.queue.count(State::Dead), 1);
    assert_eq!(approached(&mut b, &purge(Some(State::Dead), None)).0, 1);
    assert_eq!(approached(&mut b, &purge(Some(State::Dead), None)), (0, 1));
    assert_eq!(b.take(5).len(), 1, "the others are held on");
}
