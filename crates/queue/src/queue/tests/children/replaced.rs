//! Parents and children that others replace.

use super::{child, counts, finish, fixture, parent, sent, tell};
use crate::message::state::State;
use crate::op::{Fetch, Op, Send};
use crate::queue::tests::fixture::{kill, named};

#[test]
fn a_child_counts_once_however_it_is_replaced() {
    let mut b = fixture();
    let p = sent(&mut b, parent("p", 9));
    let replace = |send: Send<'static>, rerun: bool| Send {
        replace: true,
        rerun,
        ..send
    };
    sent(&mut b, child("a", "p"));
    sent(&mut b, replace(child("a", "p"), false));
    assert_eq!(counts(&b, p), [0; 5]);
    // Another message replaces the child.
    sent(&mut b, replace(named("a"), false));
    assert_eq!(counts(&b, p), [0, 0, 0, 1, 0]);
    b.cancel("a");
    tell(&mut b);
    // A dead child becomes pending again.
    kill(&mut b, child("b", "p"));
    tell(&mut b);
    assert_eq!(counts(&b, p), [0, 0, 1, 1, 1]);
    sent(&mut b, replace(child("b", "p"), false));
    assert_eq!(counts(&b, p), [0, 0, 0, 1, 0]);
    // A child that runs again has not ended.
    let (_, receipt) = b.fetch(Fetch::one())[0];
    let again = Op::Send(replace(child("b", "p"), true));
    b.apply(&again);
    b.ack(&[receipt]);
    tell(&mut b);
    assert_eq!(counts(&b, p), [0, 0, 0, 1, 0]);
    finish(&mut b);
    assert_eq!(counts(&b, p), [1, 0, 0, 1, 0]);
    // A message without a parent has ended when it runs again.
    sent(&mut b, child("c", "p"));
    let (_, receipt) = b.fetch(Fetch::one())[0];
    b.apply(&Op::Send(replace(named("c"), true)));
    b.ack(&[receipt]);
    tell(&mut b);
    assert_eq!(counts(&b, p), [2, 0, 0, 1, 0]);
}

#[test]
fn a_parent_that_is_replaced_goes_on_with_what_was_counted() {
    let mut b = fixture();
    sent(&mut b, parent("p", 3));
    sent(&mut b, child("a", "p"));
    finish(&mut b);
    let again = Send {
        replace: true,
        ..parent("p", 2)
    };
    let p = sent(&mut b, again);
    assert_eq!(
        (counts(&b, p), b.state(p)),
        ([1, 0, 0, 0, 0], Some(State::Held))
    );
    let fewer = Send {
        replace: true,
        ..parent("p", 1)
    };
    let p = sent(&mut b, fewer);
    assert_eq!(b.state(p), Some(State::Ready));
}
