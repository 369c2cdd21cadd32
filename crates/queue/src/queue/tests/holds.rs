//! Dead messages that hold their groups, and the commands that end the holds.

use super::fixture::{kill, new_message, with_ttl, Fixture};
use super::slices::{in_slices, purge, GROUPS};
use crate::message::state::State;
use crate::op::Op;
use crate::queue::rebuild::validate;
use crate::settings::{OnDead, Settings};
use crate::Moment;

/// Groups of which each has a message and is held by a dead one. All those dead
/// messages but the last are pruned.
fn all_held_by_pruned_ones() -> Fixture {
    let mut b = Fixture::new(Settings {
        on_dead: OnDead::Block,
        dead_count: 1,
        ..Settings::default()
    });
    for group in GROUPS {
        kill(&mut b, new_message(Some(group)));
        b.to(group);
    }
    b
}

#[test]
fn a_purge_of_all_ends_what_pruned_ones_hold() {
    let mut b = all_held_by_pruned_ones();
    assert_eq!(in_slices(&mut b, &purge(None, None)), (6, 0));
    assert_eq!(validate(&b.queue), Ok(()));
    assert_eq!(b.queue.groups_listed(), 0);
    let sent = [b.to("a"), b.to("e")];
    assert_eq!(b.take(9), sent);
    // A hold that begins after the purge must not be ended by it.
    kill(&mut b, new_message(Some("b")));
    b.to("b");
    assert!(b.take(9).is_empty());
    assert_eq!(validate(&b.queue), Ok(()));
    assert_eq!(b.queue.state.groups.held_count(), 1);
}

#[test]
fn what_very_many_of_a_group_hold_ends_at_once_and_is_freed_in_slices() {
    let mut b = Fixture::new(Settings {
        on_dead: OnDead::Block,
        ..Settings::default()
    });
    for _ in 0..3000 {
        b.send(with_ttl(new_message(Some("g")), 1));
    }
    b.wait(1);
    b.plain();
    let (_, group) = b.queue.state.groups.starting_at(0).next().unwrap();
    assert_eq!(group.unwrap().ext().holds.iter().count(), 3000);
    let resume = Op::Resume {
        group: Some(b"g".into()),
    };
    b.queue.apply(&resume, Moment::at_ms(b.now)).unwrap();
    assert!(b.queue.has_garbage());
    let after = b.to("g");
    assert!(b.take(9).contains(&after));
    while b.queue.free_garbage(1) {}
    assert_eq!(validate(&b.queue), Ok(()));
}

#[test]
fn a_purge_of_dead_messages_does_not_wait_for_pruned_ones_and_keeps_their_holds() {
    let mut b = all_held_by_pruned_ones();
    assert_eq!(b.queue.count(State::Dead), 1);
    assert_eq!(in_slices(&mut b, &purge(Some(State::Dead), None)), (1, 0));
    assert_eq!(in_slices(&mut b, &purge(Some(State::Dead), None)), (0, 0));
    assert_eq!(b.take(5).len(), 1, "the others are held on");
}
