//! FAIR: the measure by which groups take turns.

use super::fixture::{Fixture, Got};
use crate::message::limited::Limited;
use crate::message::{Choices, RareChoices};
use crate::op::{Fetch, Op, Send};
use crate::queue::rebuild::validate;
use crate::settings::{Fair, Settings};
use crate::{Millis, MAX_EXACT};
use std::collections::HashMap;

fn fixture(fair: Fair) -> Fixture {
    Fixture::new(Settings {
        fair,
        ..Settings::default()
    })
}

fn message(group: Option<&'static str>, cost: u64) -> Send<'static> {
    let limited = Limited {
        names: Box::default(),
        cost,
    };
    Send {
        group: group.map(|group| group.as_bytes().into()),
        choices: Choices {
            rare: Some(Box::new(RareChoices {
                limited: Some(Box::new(limited)),
                ..RareChoices::default()
            })),
            ..Choices::default()
        },
        ..Send::plain(b"x")
    }
}

/// One delivery, and the group of its message.
fn one(f: &mut Fixture) -> Option<(Got, Option<&'static str>)> {
    let got = *f.fetch(Fetch::one()).first()?;
    let view = f.queue.view(got.0, f.now).unwrap();
    let group = view.group.map(|name| match name {
        b"a" => "a",
        b"b" => "b",
        _ => "c",
    });
    validate(&f.queue).unwrap();
    Some((got, group))
}

/// Lets one worker handle messages for `ms`, each for the time that `takes` returns. Returns
/// how long it worked for each group.
fn work(
    f: &mut Fixture,
    ms: Millis,
    takes: impl Fn(Option<&str>) -> Millis,
) -> HashMap<Option<&'static str>, Millis> {
    let mut worked = HashMap::new();
    let end = f.now + ms;
    while f.now < end {
        let (got, group) = one(f).unwrap();
        let ms = takes(group);
        *worked.entry(group).or_default() += ms;
        f.wait(ms);
        f.ack(&[got.1]);
    }
    worked
}

fn share(worked: &HashMap<Option<&'static str>, Millis>, group: Option<&str>) -> f64 {
    let all: Millis = worked.values().sum();
    let own = worked.iter().find(|(name, _)| **name == group);
    own.map_or(0, |(_, ms)| *ms) as f64 / all as f64
}

#[test]
fn a_group_that_was_idle_gets_no_more_than_its_turns() {
    let mut f = fixture(Fair::Time);
    for _ in 0..1000 {
        f.to("a");
    }
    work(&mut f, 5_000, |_| 10);
    for _ in 0..1000 {
        f.to("b");
    }
    let worked = work(&mut f, 1_000, |_| 10);
    let share = share(&worked, Some("b"));
    assert!((0.48..0.52).contains(&share), "{share}");
}

#[test]
fn groups_share_costs() {
    let mut f = fixture(Fair::Cost);
    for _ in 0..300 {
        f.send(message(Some("a"), 50));
        f.send(message(Some("b"), 5));
        f.send(message(None, 10));
    }
    let mut cost: HashMap<Option<&str>, u64> = HashMap::new();
    for _ in 0..170 {
        let (got, group) = one(&mut f).unwrap();
        *cost.entry(group).or_default() += match group {
            Some("a") => 50,
            Some(_) => 5,
            None => 10,
        };
        f.ack(&[got.1]);
    }
    let (least, most) = (cost.values().min().unwrap(), cost.values().max().unwrap());
    assert!(cost.len() == 3 && most - least <= 50, "{cost:?}");
}

#[test]
fn what_an_ack_books_counts() {
    let mut f = fixture(Fair::Cost);
    for _ in 0..3 {
        f.send(message(Some("a"), 1));
        f.send(message(Some("b"), 1));
    }
    let (got, group) = one(&mut f).unwrap();
    assert_eq!(group, Some("a"));
    f.apply(&Op::AckCost {
        receipts: [got.1].into_iter().collect(),
        cost: 100,
        result: None,
    });
    let mut next = Vec::new();
    for _ in 0..4 {
        let (got, group) = one(&mut f).unwrap();
        next.push(group.unwrap());
        f.ack(&[got.1]);
    }
    assert_eq!(next, ["b", "b", "b", "a"]);
}

#[test]
fn a_group_whose_messages_cost_more_than_any_sum_leaves_the_others_their_turns() {
    let mut f = fixture(Fair::Cost);
    for _ in 0..20_000 {
        f.send(message(Some("a"), MAX_EXACT));
    }
    // The clock of the turns comes to its end more than once.
    for _ in 0..19_000 {
        let (seq, receipt) = f.fetch(Fetch::one())[0];
        f.apply(&Op::AckCost {
            receipts: [receipt].into_iter().collect(),
            cost: MAX_EXACT,
            result: None,
        });
        assert!(f.queue.message(seq).is_none());
    }
    validate(&f.queue).unwrap();
    for group in ["b", "c"] {
        for _ in 0..10 {
            f.send(message(Some(group), 10));
        }
    }
    let given = (0..21).map(|_| {
        let (got, group) = one(&mut f).unwrap();
        f.ack(&[got.1]);
        group
    });
    let given: Vec<_> = given.collect();
    let of = |name: &str| given.iter().filter(|of| **of == Some(name)).count();
    assert_eq!((of("a"), of("b"), of("c")), (1, 10, 10));
    // Those that are equal still take turns.
    let alternate = given.iter().filter(|of| **of != Some("a"));
    let alternate: Vec<_> = alternate.collect();
    assert!(alternate.windows(2).all(|two| two[0] != two[1]));
}
