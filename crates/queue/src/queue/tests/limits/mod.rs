//! Limits with names: DQ.LIMIT, LIMITS, COST.

mod clock;
mod costs;
mod random;
mod steps;

use super::fixture::{Fixture, Got};
use crate::error::Error;
use crate::message::limited::Limited;
use crate::message::state::State;
use crate::message::{Choices, RareChoices};
use crate::named_limits::{LimitRule, MAX_BETWEEN, MAX_NESTED, MAX_PARTS};
use crate::op::{Done, DueTime, Fetch, NackKind, Op, Send};
use crate::queue::rebuild::validate;
use crate::settings::{Changes, OnDead, OnRetry, Rate, Settings};
use crate::{Millis, Moment, Seq, MAX_EXACT};

/// A rule with these windows.
fn rule(concurrency: u64, rates: &[(u64, Millis)]) -> LimitRule {
    let rates = rates.iter().map(|(count, per)| Rate {
        count: *count,
        per: *per,
    });
    LimitRule {
        concurrency,
        weighted: false,
        rates: rates.collect(),
    }
}

/// A rule that counts costs.
fn weighted(concurrency: u64, rates: &[(u64, Millis)]) -> LimitRule {
    LimitRule {
        weighted: true,
        ..rule(concurrency, rates)
    }
}

fn set(name: &str, rule: LimitRule) -> Op<'static> {
    Op::Limit {
        name: name.as_bytes().to_vec().into(),
        rule,
    }
}

/// A message that names these limits.
fn limited(group: Option<&str>, names: &[&str], cost: u64) -> Send<'static> {
    let names = names.iter().map(|name| name.as_bytes().into());
    let limited = Limited {
        names: names.collect(),
        cost,
    };
    Send {
        group: group.map(|group| group.as_bytes().to_vec().into()),
        choices: Choices {
            rare: Some(Box::new(RareChoices {
                limited: Some(Box::new(limited)),
                ..RareChoices::default()
            })),
            ..Choices::default()
        },
        ..Send::plain(b"payload")
    }
}

fn fixture(limits: &[(&str, LimitRule)]) -> Fixture {
    let mut fixture = Fixture::new(Settings::default());
    for (name, rule) in limits {
        fixture.apply(&set(name, rule.clone()));
    }
    fixture
}

impl Fixture {
    fn limited(&mut self, names: &[&str], cost: u64) -> Seq {
        let seq = self.send(limited(None, names, cost));
        validate(&self.queue).unwrap();
        seq
    }

    fn most(&mut self, count: u64) -> Vec<Got> {
        let got = self.fetch(Fetch {
            count,
            ..Fetch::one()
        });
        validate(&self.queue).unwrap();
        got
    }

    fn ack_cost(&mut self, got: Got, cost: u64) {
        let done = self.apply(&Op::AckCost {
            receipts: [got.1].into_iter().collect(),
            cost,
            result: None,
        });
        assert_eq!(done, Done::Count(1));
    }

    fn why(&self, seq: Seq) -> (&'static str, Option<Millis>, Option<String>) {
        let id = self.queue.id_of(seq, self.queue.message(seq).unwrap());
        let why = self.queue.explain(id.as_bytes(), self.now).unwrap();
        let by = why.by.map(|by| String::from_utf8_lossy(&by).into_owned());
        (why.code.name(), why.until, by)
    }
}

fn seqs(got: &[Got]) -> Vec<Seq> {
    got.iter().map(|(seq, _)| *seq).collect()
}

#[test]
fn messages_without_a_group_stay_without_one() {
    let mut f = fixture(&[("a", rule(1, &[]))]);
    let changes = Changes {
        on_dead: Some(OnDead::Block),
        retain: Some(1000),
        ..Changes::default()
    };
    f.apply(&Op::Alter(changes));
    let first = f.limited(&["a"], 1);
    let second = f.limited(&["a"], 1);
    let view = f.queue.view(first, f.now).unwrap();
    assert_eq!((view.group, view.score), (None, None));
    assert_eq!(f.queue.groups_listed(), 0);
    let got = f.most(1);
    f.nack(&[got[0].1], NackKind::Fatal);
    assert_eq!(f.state(first), Some(State::Dead));
    let got = f.most(9);
    assert_eq!(seqs(&got), [second], "no dead message holds the others");
    f.nack(&[got[0].1], NackKind::Delay(100));
    let third = f.limited(&["a"], 1);
    assert_eq!(seqs(&f.most(9)), [third], "nor does one that failed");
}

#[test]
fn what_runs_without_a_rule_counts_when_there_is_one() {
    let mut f = fixture(&[]);
    f.limited(&["a"], 1);
    let got = f.most(1);
    f.apply(&set("a", rule(1, &[])));
    let next = f.limited(&["a"], 1);
    assert!(f.most(1).is_empty());
    f.ack(&[got[0].1]);
    assert_eq!(seqs(&f.most(1)), [next]);
}

#[test]
fn a_purge_frees_what_runs_and_keeps_what_began() {
    let mut f = fixture(&[("run", rule(1, &[])), ("rate", rule(0, &[(1, 100)]))]);
    f.limited(&["run"], 1);
    f.limited(&["rate"], 1);
    f.limited(&["rate"], 1);
    assert_eq!(f.most(9).len(), 2);
    f.apply(&Op::Purge {
        state: None,
        group: None,
    });
    validate(&f.queue).unwrap();
    let again = f.limited(&["run"], 1);
    f.limited(&["rate"], 1);
    assert_eq!(seqs(&f.most(9)), [again]);
    f.wait(100);
    assert_eq!(f.most(9).len(), 1);
}

#[test]
fn delayed_messages_wait_for_their_limit_when_they_are_due() {
    let mut f = fixture(&[("a", rule(1, &[]))]);
    let later = f.send(Send {
        due: DueTime::After(50),
        ..limited(None, &["a"], 1)
    });
    let now = f.limited(&["a"], 1);
    let got = f.most(9);
    assert_eq!(seqs(&got), [now]);
    f.wait(50);
    assert!(f.most(9).is_empty());
    f.ack(&[got[0].1]);
    assert_eq!(seqs(&f.most(9)), [later]);
}

#[test]
fn idle_names_of_a_pattern_are_forgotten() {
    let mut f = fixture(&[("u-*", rule(1, &[(5, 100)]))]);
    for n in 0..10 {
        f.limited(&[&format!("u-{n}")], 1);
    }
    let got = f.most(99);
    assert_eq!(got.len(), 10);
    let known = |f: &Fixture| f.queue.limits().unwrap().starting_at(0).count();
    assert_eq!(known(&f), 11);
    for one in got {
        f.ack(&[one.1]);
    }
    assert_eq!(known(&f), 11, "their windows count still");
    f.wait(100);
    assert_eq!(known(&f), 1);
    validate(&f.queue).unwrap();
}

#[test]
fn a_failed_message_that_is_due_again_waits_for_its_own_limits() {
    let mut f = Fixture::new(Settings {
        on_retry: OnRetry::Skip,
        ..Settings::default()
    });
    f.apply(&set("*", rule(1, &[])));
    let failed = f.send(limited(Some("g"), &["a"], 1));
    f.send(limited(Some("g"), &["b"], 1));
    let other = f.limited(&["b"], 1);
    let got = f.most(1);
    f.nack(&[got[0].1], NackKind::Delay(10));
    f.wait(10);
    // The group waited for the limit b, which has room for one.
    let mut given = seqs(&f.most(9));
    given.sort_unstable();
    assert_eq!(given, [failed, other]);
}

#[test]
fn one_fetch_looks_at_some_of_very_many_groups_that_fall_due_behind_a_full_limit() {
    let mut f = fixture(&[("a", rule(1, &[]))]);
    f.limited(&["a"], 1);
    assert_eq!(f.most(9).len(), 1);
    for n in 0..1100 {
        f.send(Send {
            due: DueTime::After(10),
            ..limited(Some(&n.to_string()), &["a"], 1)
        });
    }
    f.now += 10;
    let moment = Moment::at_ms(f.now);
    let left = |f: &Fixture| f.queue.indexes.expected.by(f.now).count();
    for expected in [1100, 76, 0] {
        assert_eq!(left(&f), expected);
        let done = f.queue.apply(&Op::fetch(Fetch::one()), moment).unwrap();
        assert!(matches!(done, Done::Fetched(given) if given.is_empty()));
    }
    f.wait(0);
    validate(&f.queue).unwrap();
}

#[test]
fn patterns_of_several_stars_are_refused_where_too_much_stands_between_them() {
    let set_rule = set;
    let set = |name: String| set_rule(&name, rule(1, &[]));
    let refused = |f: &mut Fixture, op: &Op| f.queue.apply(op, Moment::at_ms(f.now)).err();
    let error = |what, limit| Some(Error::PatternsTooLong { what, limit });
    let mut f = fixture(&[]);
    let parts = |n: usize| set(format!("{n}*{}", "a*".repeat(MAX_PARTS / 16)));
    for n in 0..16 {
        f.apply(&parts(n));
    }
    assert_eq!(refused(&mut f, &parts(16)), error("parts", MAX_PARTS));
    let mut f = fixture(&[]);
    let nested = |n: usize| set(format!("*{}*", "a".repeat(n)));
    for n in 1..=MAX_NESTED {
        f.apply(&nested(n));
        f.apply(&set(format!("*{n}b*")));
    }
    let what = "parts that end in each other";
    assert_eq!(
        refused(&mut f, &nested(MAX_NESTED + 1)),
        error(what, MAX_NESTED)
    );
    let mut f = fixture(&[]);
    let pattern = |n: usize| format!("*{n:0>1000}*");
    for n in 0..MAX_BETWEEN / 1000 {
        f.apply(&set(pattern(n)));
    }
    let one_more = set(pattern(MAX_BETWEEN));
    assert_eq!(refused(&mut f, &one_more), error("bytes", MAX_BETWEEN));
    // Those that are there may change, and others come in their place.
    let changed = |rule| set_rule(&pattern(7), rule);
    f.apply(&changed(rule(2, &[])));
    f.apply(&changed(rule(0, &[])));
    f.apply(&one_more);
    f.apply(&set("user-*".into()));
}
