//! Generates random options of queues, messages and schedules.

use std::num::NonZeroU64;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::{text, Scale};
use crate::dead_letters::DeadTo;
use crate::limits::MAX_ERRORS;
use crate::message::after::{After, Batching, Counts, OnFail, Park};
use crate::message::kin::{Children, Kin, Parent};
use crate::message::limited::Limited;
use crate::message::score::Score;
use crate::message::{Choices, RareChoices};
use crate::named_limits::{LimitRule, MAX_WINDOWS};
use crate::op::{DueTime, Op};
use crate::settings::*;
use crate::MAX_EXACT;

fn backoff(scale: Scale) -> impl Strategy<Value = Backoff> {
    (0..3, scale.ms()).prop_map(|(kind, ms)| match kind {
        0 => Backoff::Fixed(ms),
        1 => Backoff::Linear(ms),
        _ => Backoff::Exp(ms),
    })
}

pub fn rate(scale: Scale) -> impl Strategy<Value = Option<Rate>> {
    let rate = (scale.some(), scale.some()).prop_map(|(count, per)| Rate { count, per });
    option::weighted(0.6, rate)
}

fn breaker(scale: Scale) -> impl Strategy<Value = Option<Breaker>> {
    let breaker = (1..=1000u64, scale.some(), scale.some(), scale.some());
    let breaker = breaker.prop_map(|(failures, per, one, other)| Breaker {
        failures: failures.div_ceil(100),
        per,
        open: one.min(other),
        max: one.max(other),
    });
    option::weighted(0.8, breaker)
}

pub fn changes(scale: Scale) -> impl Strategy<Value = Changes> {
    let maybe = move || option::weighted(0.25, scale.ms());
    let some = move || option::weighted(0.25, scale.some());
    let lists = (
        (maybe(), maybe(), maybe(), maybe(), maybe(), maybe()),
        (maybe(), maybe(), maybe(), maybe(), some(), some()),
        (
            option::weighted(0.3, -1..4i64),
            option::weighted(0.3, backoff(scale)),
            option::weighted(0.2, 0..=100u8),
            option::weighted(0.2, rate(scale)),
            option::weighted(0.3, 0..3u8),
            option::weighted(0.3, any::<bool>()),
            option::weighted(0.3, breaker(scale)),
            option::weighted(0.3, any::<bool>()),
            option::weighted(0.3, scale.ms()),
            option::weighted(0.3, 0..=MAX_ERRORS),
        ),
    );
    (lists, option::weighted(0.3, dead_to()), events(scale))
        .prop_map(|((a, b, c), dead_to, events)| Changes {
            lease: b.4,
            retries: c.0,
            backoff: c.1,
            max_backoff: a.0,
            jitter: c.2,
            ttl: a.1,
            retain: a.2,
            retain_count: a.3,
            dead_retain: a.4,
            dead_count: a.5,
            dedup: b.0,
            max_len: b.1.map(|n| n * 2),
            max_bytes: b.2.map(|n| n * 16),
            max_running: b.3,
            rate: c.3,
            group_concurrency: b.5,
            on_retry: c.4.and_then(|n| OnRetry::ALL.get(usize::from(n)).copied()),
            breaker: c.6,
            closed: c.7,
            max_timeouts: c.8,
            errors: c.9,
            dead_to,
            events: events.0,
            events_len: events.1,
            compress: c.7,
            fair: c.9.and_then(|n| Fair::ALL.get(usize::from(n)).copied()),
            on_dead: c.5.map(|block| {
                if block {
                    OnDead::Block
                } else {
                    OnDead::Continue
                }
            }),
        })
        .prop_map(|mut changes| {
            for n in [&mut changes.max_len, &mut changes.max_bytes] {
                *n = n.map(|n| n.min(MAX_EXACT));
            }
            changes
        })
}

/// EVENTS and EVENTSLEN, as they change.
type Events = (Option<Option<Box<[u8]>>>, Option<u64>);

/// A history of one queue leaves EVENTS and EVENTSLEN as they are.
fn events(scale: Scale) -> BoxedStrategy<Events> {
    let key = prop_oneof![Just(None), Just(Some(b"stream"[..].into()))];
    match scale {
        Scale::Any => (
            option::weighted(0.3, key),
            option::weighted(0.3, scale.some()),
        )
            .boxed(),
        Scale::Small => Just((None, None)).boxed(),
    }
}

/// The queue to which dead messages go.
pub fn dead_to() -> impl Strategy<Value = Option<Box<DeadTo>>> {
    let dead_to = (select(vec!["dead", "other"]), select(vec![0, 2, 0b1010]));
    let dead_to = dead_to.prop_map(|(key, reasons)| {
        Box::new(DeadTo {
            key: key.as_bytes().into(),
            reasons,
        })
    });
    option::weighted(0.8, dead_to)
}

fn batching(scale: Scale) -> impl Strategy<Value = Option<Box<Batching>>> {
    let on_fail = select(OnFail::ALL.to_vec());
    let names = (
        option::weighted(0.7, scale.name()),
        option::weighted(0.5, scale.name()),
    );
    let park = option::weighted(0.3, option::of(scale.some()));
    (names, on_fail, park).prop_map(|((batch, after), on_fail, park)| {
        let batching = Batching {
            batch: batch.map(|name| name.into_owned().into()),
            after: after.map(|name| After {
                batch: name.into_owned().into(),
                on_fail,
                counts: Counts::default(),
            }),
            park: park.map(|ms| Park {
                ms: ms.and_then(NonZeroU64::new),
            }),
        };
        let is_any = batching.is_of_batches() || batching.park.is_some();
        (is_any && !batching.is_after_itself()).then(|| Box::new(batching))
    })
}

/// Doubles, and integers that are not doubles.
fn score() -> impl Strategy<Value = Score> {
    let integers = (i128::from(i64::MIN)..=i128::from(u64::MAX)).prop_map(Score::of_integer);
    let scores = prop_oneof![(-3.0..3.0f64).prop_map(Score::of_double), integers];
    scores.prop_filter_map("a score", |score| score)
}

pub fn choices(scale: Scale) -> impl Strategy<Value = Choices> {
    let some = (
        option::weighted(0.3, score()),
        option::weighted(0.3, scale.some()),
        option::weighted(0.3, -1..3i64),
        option::weighted(0.3, backoff(scale)),
        option::weighted(0.3, scale.ms()),
        option::weighted(0.2, scale.name()),
        vec((text(), text()), 0..3),
        rare_choices(scale),
        option::weighted(0.5, batching(scale)),
    );
    let some = some.prop_map(
        |(score, lease, retries, backoff, ttl, label, headers, mut rare, batching)| {
            if ttl.is_some() {
                rare.expire_at = None;
            }
            rare.batching = batching.flatten();
            Choices {
                score,
                lease: lease.and_then(NonZeroU64::new),
                retries,
                backoff,
                ttl,
                label: label.map(|label| label.into_owned().into()),
                headers: headers
                    .into_iter()
                    .map(|(f, v)| (f.into_owned().into(), v.into_owned().into()))
                    .collect(),
                rare: (rare != RareChoices::default()).then(|| Box::new(rare)),
            }
        },
    );
    let only_limited = limited(scale).prop_map(|limited| Choices {
        rare: Some(Box::new(RareChoices {
            limited: Some(Box::new(limited)),
            ..RareChoices::default()
        })),
        ..Choices::default()
    });
    prop_oneof![3 => Just(Choices::default()), 1 => some, 1 => only_limited]
}

fn limited(scale: Scale) -> impl Strategy<Value = Limited> {
    let names = prop::sample::subsequence(vec!["a", "b", "u-1", "u-2"], 1..3);
    (names, scale.ms()).prop_map(|(names, cost)| Limited {
        names: names
            .into_iter()
            .map(|name| name.as_bytes().into())
            .collect(),
        cost,
    })
}

/// A limit's name or a pattern, and its rule.
pub fn limit(scale: Scale) -> impl Strategy<Value = Op<'static>> {
    let name = select(vec!["a", "b", "u-*", "*"]);
    let rate = (scale.some(), scale.some()).prop_map(|(count, per)| Rate { count, per });
    let rates = vec(rate, 0..=MAX_WINDOWS);
    (name, option::of(scale.some()), any::<bool>(), rates).prop_map(
        |(name, concurrency, weighted, rates)| Op::Limit {
            name: name.as_bytes().into(),
            rule: LimitRule {
                concurrency: concurrency.unwrap_or(0),
                weighted: weighted && (concurrency.is_some() || !rates.is_empty()),
                rates: rates.into(),
            },
        },
    )
}

/// PARENT, CHILDREN or both. The parents are in the queue `q`.
fn kin(scale: Scale) -> impl Strategy<Value = Option<Box<Kin>>> {
    let parent = (scale.name(), select(OnFail::ALL.to_vec()));
    let parent = parent.prop_map(|(id, on_dead)| Parent {
        key: Box::from(*b"q"),
        id: id.into_owned().into(),
        on_dead,
    });
    let children = (1..4u64).prop_map(|total| Box::new(Children::new(total)));
    let both = (
        option::weighted(0.6, parent),
        option::weighted(0.5, children),
    );
    both.prop_map(|(parent, children)| {
        let kin = Kin { parent, children };
        (kin != Kin::default()).then(|| Box::new(kin))
    })
}

fn rare_choices(scale: Scale) -> impl Strategy<Value = RareChoices> {
    let some = (
        option::weighted(0.5, scale.ms()),
        option::weighted(0.3, scale.ms()),
        option::weighted(0.3, scale.ms()),
        option::weighted(0.3, scale.ms()),
        option::weighted(0.3, 0..=MAX_ERRORS),
        option::weighted(0.5, limited(scale)),
        option::weighted(0.3, kin(scale)),
    );
    let some = some.prop_map(
        |(retain, expire_at, max_wait, max_timeouts, errors, limited, kin)| RareChoices {
            retain,
            expire_at,
            max_wait,
            batching: None,
            max_timeouts,
            errors,
            limited: limited.map(Box::new),
            kin: kin.flatten(),
        },
    );
    prop_oneof![1 => Just(RareChoices::default()), 1 => some]
}

pub fn due(scale: Scale) -> impl Strategy<Value = DueTime> {
    prop_oneof![
        2 => Just(DueTime::Now),
        2 => scale.ms().prop_map(DueTime::After),
        1 => scale.ms().prop_map(DueTime::At),
    ]
}

pub fn priority() -> impl Strategy<Value = i8> {
    prop_oneof![4 => Just(0i8), 1 => -1..=1i8, 1 => any::<i8>()]
}
