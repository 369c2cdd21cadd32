//! The order in which messages are delivered.

use super::driver::Pair;
use super::fixture::{later, new_message, with_ttl, Fixture};
use super::named_batches::with;
use crate::message::after::OnFail;
use crate::message::{Choices, RareChoices};
use crate::op::{Done, Fetch, GroupChanges, Op, Send};
use crate::settings::{Changes, Rate, Settings};
use crate::Moment;

fn urgent(group: Option<&'static str>) -> Send<'static> {
    Send {
        priority: -1,
        ..new_message(group)
    }
}

#[test]
fn at_most_one_message_exceeds_max_bytes() {
    let mut b = Fixture::new(Settings::default());
    let first = b.plain();
    let empty = b.send(Send::plain(b""));
    let got = b.fetch(Fetch {
        count: 9,
        max_bytes: Some(1),
        ..Fetch::one()
    });
    assert_eq!(got.len(), 1);
    assert_eq!(got[0].0, first);
    assert_eq!(b.take(1), [empty]);
}

#[test]
fn a_group_without_messages_leaves_the_ready_line() {
    let mut b = Fixture::new(Settings::default());
    b.to("g");
    let only_once = Fetch {
        no_ack: true,
        ..Fetch::one()
    };
    assert_eq!(b.fetch(only_once.clone()).len(), 1);
    assert!(b.fetch(only_once).is_empty());

    b.send(Send {
        id: Some(b"x".as_slice().into()),
        ..new_message(Some("g"))
    });
    let moved = b.send(Send {
        id: Some(b"x".as_slice().into()),
        replace: true,
        ..new_message(None)
    });
    assert_eq!(b.take(9), [moved]);
    assert!(b.take(9).is_empty());
}

#[test]
fn the_ungrouped_position_skips_an_expired_head_even_if_a_group_gives_first() {
    let mut b = Fixture::new(Settings::default());
    let leased = b.plain();
    let lease = Fetch {
        lease: Some(4),
        ..Fetch::one()
    };
    assert_eq!(b.fetch(lease)[0].0, leased);
    b.send(with_ttl(new_message(None), 2));
    let first = b.send(later(Some("g"), 3));
    // Due events are not processed here. First the ungrouped message expires, then
    // the group can give, then the lease ends.
    let now = b.now + 5;
    let given = b.queue.apply(&Op::fetch(Fetch::one()), Moment::at_ms(now));
    let Ok(Done::Fetched(given)) = given else {
        panic!("{given:?}");
    };
    assert_eq!(given[0].seq, first);
    let stands = b
        .queue
        .state
        .plain_position
        .map(|key| (key.join.time, key.seq));
    assert_eq!(stands, Some((now - 1, leased)));
}

#[test]
fn a_full_fetch_leaves_the_next_group_where_it_is_though_its_turn_is_over() {
    let group_set = |weight| Op::GroupSet {
        group: b"g".into(),
        changes: GroupChanges {
            weight: Some(weight),
            concurrency: Some(2),
            rate: None,
        },
    };
    let small = Fetch {
        max_bytes: Some(1),
        count: 9,
        ..Fetch::one()
    };
    for full_after_one in [Fetch::one(), small] {
        let mut pair = Pair::new(&Changes::default(), false);
        let steps = [
            Op::Send(new_message(Some("g"))),
            Op::Send(new_message(Some("g"))),
            group_set(2),
            Op::fetch(Fetch::one()),
            // The group has delivered one message, and with the new weight that is a whole turn.
            group_set(1),
            Op::Send(new_message(None)),
            Op::Send(urgent(None)),
            Op::fetch(full_after_one),
        ];
        for op in &steps {
            pair.advance(pair.now);
            pair.apply(op);
            pair.compare();
        }
        assert_eq!(pair.queue.peek(9, pair.now), [2, 3]);
    }
}

/// A message that expires when it falls due can never be delivered by its group.
#[test]
fn a_group_keeps_its_turn_when_an_urgent_message_expires_as_it_falls_due() {
    let mut pair = Pair::new(&Changes::default(), false);
    pair.advance(pair.now);
    let never_given = Send {
        choices: Choices {
            rare: Some(Box::new(RareChoices {
                expire_at: Some(pair.now + 30),
                ..RareChoices::default()
            })),
            ..Choices::default()
        },
        priority: -1,
        ..later(Some("g"), 30)
    };
    for send in [new_message(Some("g")), new_message(Some("h")), never_given] {
        pair.apply(&Op::Send(send));
    }
    pair.advance(pair.now + 31);
    pair.compare();
    assert_eq!(pair.queue.peek(9, pair.now), [1, 2]);
}

/// Two groups that can deliver because of the same command join the ready line by their
/// heads of that time. Messages that a batch releases in the same FETCH do not change
/// that.
#[test]
fn what_a_fetch_releases_does_not_change_which_of_two_groups_joined_first() {
    let changes = Changes {
        rate: Some(Some(Rate { count: 1, per: 20 })),
        ..Changes::default()
    };
    let mut pair = Pair::new(&changes, false);
    let send = |group, batch, after: Option<&str>| {
        let after = after.map(|batch| (batch, OnFail::Hold));
        Op::Send(with(new_message(Some(group)), batch, after))
    };
    let fetch = |acks: &[u64]| {
        Op::fetch(Fetch {
            acks: acks.into(),
            ..Fetch::one()
        })
    };
    let steps = [
        (1000, Op::Send(new_message(Some("h")))),
        (1000, send("g", Some("z"), None)),
        (1000, send("h", None, Some("z"))),
        (1000, Op::Send(new_message(Some("g")))),
        (1000, fetch(&[])),
        (1014, Op::Send(new_message(Some("h")))),
        (1059, fetch(&[])),
        // Nothing is delivered yet, because of the RATE.
        (1062, fetch(&[1_059_000, 1_000_000])),
    ];
    for (at, op) in &steps {
        pair.advance(*at);
        pair.apply(op);
        pair.compare();
    }
    pair.advance(1080);
    assert_eq!(pair.queue.peek(1, pair.now), [4]);
    pair.apply(&fetch(&[]));
    pair.compare();
}
