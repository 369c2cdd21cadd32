//! Random plans. They use few names and short times, so that their operations
//! affect the same messages.

mod held;

use std::num::NonZeroU64;

use proptest::collection::vec;
use proptest::option::{of, weighted};
use proptest::prelude::*;

use crate::message::after::Batching;
use crate::message::score::Score;
use crate::message::state::State;
use crate::message::{Choices, RareChoices};
use crate::op::{FindAct, GroupChanges, NackKind, NackPause, Paused};
use crate::queue::tests::ops::{Name, NewMessage, Plan, RandomOp, Step, When};
use crate::schedule::{Limits, Overlap};
use crate::settings::{Backoff, Breaker, Changes, OnDead, OnRetry, Rate};
use held::{batching, park};

fn name() -> impl Strategy<Value = Name> {
    prop_oneof![(0..4u8).prop_map(Name::Given), (0..12u8).prop_map(Name::At)]
}

fn when() -> impl Strategy<Value = When> {
    prop_oneof![
        4 => Just(When::Now),
        3 => (0..50u64).prop_map(When::After),
        1 => (0..200u64).prop_map(When::At),
    ]
}

fn backoff() -> impl Strategy<Value = Backoff> {
    prop_oneof![
        Just(Backoff::Fixed(0)),
        (1..30u64).prop_map(Backoff::Fixed),
        (1..10u64).prop_map(Backoff::Linear),
        (1..6u64).prop_map(Backoff::Exp),
    ]
}

fn rare(batching: Box<Batching>) -> Box<RareChoices> {
    Box::new(RareChoices {
        batching: Some(batching),
        ..RareChoices::default()
    })
}

/// Small numbers, and integers that share one double.
fn score() -> impl Strategy<Value = Score> {
    let large = (-1i128..3).prop_map(|n| (1 << 60) + n);
    prop_oneof![3 => (-2..3i128).boxed(), 1 => large.boxed()]
        .prop_map(|number| Score::of_integer(number).unwrap())
}

fn choices() -> impl Strategy<Value = Choices> {
    let some = (
        of(score()),
        weighted(0.2, (1..50u64).prop_map(|ms| NonZeroU64::new(ms).unwrap())),
        weighted(0.2, -1..3i64),
        weighted(0.2, backoff()),
        weighted(0.2, 0..50u64),
        (
            weighted(0.2, 0..200u64),
            weighted(0.3, 0..40u64),
            weighted(0.3, prop_oneof![Just(0u64), 1..90u64]),
            weighted(0.2, 0..4u64),
            weighted(0.3, 0..4u8),
        ),
        weighted(0.3, batching()),
    );
    let some = some.prop_map(
        |(
            score,
            lease,
            retries,
            backoff,
            ttl,
            (expire_at, max_wait, retain, max_timeouts, errors),
            batching,
        )| {
            let mut choices = Choices {
                score,
                lease,
                retries,
                backoff,
                ttl,
                ..Choices::default()
            };
            choices.change_rare(|rare| {
                rare.expire_at = expire_at.filter(|_| ttl.is_none());
                rare.max_wait = max_wait;
                rare.retain = retain;
                rare.max_timeouts = max_timeouts;
                rare.errors = errors;
                rare.batching = batching;
            });
            choices
        },
    );
    let batched = batching().prop_map(|batching| Choices {
        rare: Some(rare(batching)),
        ..Choices::default()
    });
    prop_oneof![2 => Just(Choices::default()), 2 => some, 1 => batched]
}

fn new_message() -> impl Strategy<Value = NewMessage> {
    (
        0..4u8,
        weighted(0.4, 0..4u8),
        weighted(0.7, 0..3u8),
        when(),
        prop_oneof![3 => Just(0i8), 1 => -1..2i8],
        choices(),
        prop::bool::weighted(0.4),
        prop::bool::weighted(0.5),
        (
            weighted(0.2, any::<u64>()),
            prop::bool::weighted(0.1),
            weighted(0.2, (0..3u8, 1..60u64)),
        ),
    )
        .prop_map(
            |(
                size,
                id,
                group,
                due,
                priority,
                choices,
                replace,
                rerun,
                (new_salt, if_group, dedup),
            )| {
                NewMessage {
                    if_group,
                    dedup,
                    size,
                    id,
                    replace,
                    rerun,
                    due,
                    group,
                    priority,
                    choices,
                    new_salt,
                }
            },
        )
}

fn fetch() -> impl Strategy<Value = RandomOp> {
    (
        1..5u64,
        prop_oneof![2 => Just(1u64), 1 => 2..4u64],
        weighted(0.2, 0..3u8),
        weighted(0.2, 1..50u64),
        weighted(0.2, 1..8u64),
        vec(0..6u8, 0..3),
        prop::bool::weighted(0.1),
        weighted(0.4, (0..2u8, weighted(0.6, 0..2u8))),
    )
        .prop_map(
            |(count, per_group, group, lease, max_bytes, acks, no_ack, consumer)| RandomOp::Fetch {
                count,
                per_group,
                group,
                lease,
                max_bytes,
                acks,
                no_ack,
                consumer,
            },
        )
}

fn nack_kind() -> impl Strategy<Value = NackKind> {
    prop_oneof![
        3 => Just(NackKind::Backoff),
        2 => (0..30u64).prop_map(NackKind::Delay),
        2 => Just(NackKind::Silent),
        2 => (1..30u64).prop_map(NackKind::Snooze),
        2 => park().prop_map(NackKind::Park),
        1 => Just(NackKind::Fatal),
    ]
}

fn nack() -> impl Strategy<Value = RandomOp> {
    let of = prop_oneof![2 => Just(Paused::Group), 1 => Just(Paused::Queue)];
    let pause = (of, 1..30u64).prop_map(|(of, ms)| NackPause { of, ms });
    (
        vec(0..6u8, 1..4),
        nack_kind(),
        weighted(0.2, 0..3u8),
        weighted(0.15, pause),
    )
        .prop_map(|(back, kind, note, pause)| RandomOp::Nack(back, kind, note, pause))
}

fn rate() -> impl Strategy<Value = Rate> {
    // All rates have the same window. There is no promise about how long deliveries are
    // remembered for a longer window that may be set later.
    (1..4u64).prop_map(|count| Rate { count, per: 20 })
}

fn breaker() -> impl Strategy<Value = Breaker> {
    (1..4u64, 1..60u64, 1..30u64, 0..60u64).prop_map(|(failures, per, open, more)| Breaker {
        failures,
        per,
        open,
        max: open + more,
    })
}

/// Options of a queue; each is set with a low probability.
fn changes() -> impl Strategy<Value = Changes> {
    let p = 0.25;
    let first = (
        weighted(p, 5..60u64),
        weighted(p, -1..3i64),
        weighted(p, backoff()),
        weighted(p, prop_oneof![Just(0u64), 1..20u64]),
        weighted(p, prop_oneof![Just(0u64), 10..80u64]),
        weighted(0.5, prop_oneof![Just(0u64), 1..60u64]),
        weighted(p, 0..3u64),
        weighted(p, prop_oneof![Just(0u64), 1..60u64]),
        weighted(p, 0..3u64),
    );
    let second = (
        weighted(p, prop_oneof![Just(0u64), 1..60u64]),
        weighted(0.1, prop_oneof![Just(0u64), 3..9u64]),
        weighted(0.1, prop_oneof![Just(0u64), 6..20u64]),
        weighted(0.15, 0..5u64),
        weighted(0.15, of(rate())),
        weighted(p, 1..4u64),
        weighted(p, proptest::sample::select(OnRetry::ALL.to_vec())),
        weighted(p, prop_oneof![Just(OnDead::Block), Just(OnDead::Continue)]),
        weighted(
            p,
            prop_oneof![1 => Just(None), 4 => breaker().prop_map(Some)],
        ),
        weighted(0.15, prop_oneof![1 => Just(true), 2 => Just(false)]),
        weighted(0.2, 0..4u64),
        weighted(0.5, 0..4u8),
    );
    (first, second).prop_map(|(a, b)| Changes {
        lease: a.0,
        retries: a.1,
        backoff: a.2,
        max_backoff: a.3,
        jitter: None,
        ttl: a.4,
        retain: a.5,
        retain_count: a.6,
        dead_retain: a.7,
        dead_count: a.8,
        dedup: b.0,
        max_len: b.1,
        max_bytes: b.2,
        max_running: b.3,
        rate: b.4,
        group_concurrency: b.5,
        on_retry: b.6,
        on_dead: b.7,
        breaker: b.8,
        closed: b.9,
        max_timeouts: b.10,
        errors: b.11,
        dead_to: None,
        events: None,
        events_len: None,
        compress: Some(true),
        fair: None,
    })
}

fn group_changes() -> impl Strategy<Value = GroupChanges> {
    (of(1..4u64), of(0..4u64), weighted(0.3, of(rate()))).prop_map(|(weight, concurrency, rate)| {
        GroupChanges {
            weight,
            concurrency,
            rate,
        }
    })
}

fn schedule() -> impl Strategy<Value = RandomOp> {
    let overlap = prop_oneof![Just(Overlap::Queue), Just(Overlap::Skip)];
    let rare = |range| weighted(0.2, range);
    let limits = (rare(0..200u64), rare(1..4u64), weighted(0.2, 0..20u64));
    let limits = limits.prop_map(|(until, times, jitter)| Limits {
        until,
        times,
        jitter: jitter.unwrap_or(0),
    });
    let times = (3..40u64, of(0..200u64));
    (0..2u8, times, overlap, limits, new_message()).prop_map(
        |(name, (period, start), overlap, limits, new_message)| RandomOp::Schedule {
            name,
            period,
            start,
            overlap,
            limits,
            new_message,
        },
    )
}

fn find_act() -> impl Strategy<Value = FindAct> {
    prop_oneof![
        2 => Just(FindAct::Redrive),
        1 => Just(FindAct::Cancel),
        2 => Just(FindAct::Purge),
    ]
}

/// One operation. `purges` is the weight of PURGE.
fn op(purges: u32) -> impl Strategy<Value = RandomOp> {
    let some = || vec(0..6u8, 1..4);
    let any_group = || of(0..3u8);
    let only = || weighted(0.6, prop::sample::select(&State::ALL[..]));
    prop_oneof![
        2 => Just(RandomOp::Tick),
        30 => (prop_oneof![4 => Just(1u8), 1 => 2..4u8], new_message())
            .prop_map(|(n, new_message)| RandomOp::Send(n, new_message)),
        30 => fetch(),
        10 => some().prop_map(RandomOp::Ack),
        6 => (weighted(0.8, 0..6u8), vec(new_message(), 1..4), weighted(0.3, name()))
            .prop_map(|(back, letters, signal)| RandomOp::AckSend(back, letters, signal)),
        14 => nack(),
        3 => (1..60u64, some(), weighted(0.3, 0..3u8))
            .prop_map(|(ms, r, note)| RandomOp::Touch(ms, r, note)),
        2 => some().prop_map(RandomOp::EndLeases),
        4 => (1..30u64, some()).prop_map(|(ms, r)| RandomOp::Grace(ms, r)),
        4 => vec(name(), 1..3).prop_map(RandomOp::Cancel),
        3 => (name(), when()).prop_map(|(name, when)| RandomOp::Reschedule(name, when)),
        2 => (name(), 0..4u8).prop_map(|(name, size)| RandomOp::Update(name, size)),
        4 => (name(), 0..4u8).prop_map(|(name, size)| RandomOp::Signal(name, size)),
        2 => prop_oneof![1..4u64, Just(u64::MAX)].prop_map(RandomOp::Redrive),
        3 => vec(name(), 1..4).prop_map(RandomOp::RedriveIds),
        3 => (prop::sample::select(&State::ALL[..]), find_act(), 0..6u8, any::<bool>())
            .prop_map(|(state, act, count, reverse)| RandomOp::Find(state, act, count, reverse)),
        purges => (only(), any_group()).prop_map(|(state, group)| RandomOp::Purge(state, group)),
        purges => prop::sample::select(&State::ALL[..])
            .prop_map(|state| RandomOp::Purge(Some(state), None)),
        purges => vec(0..12u8, 1..5).prop_map(RandomOp::Remove),
        1 => any_group().prop_map(RandomOp::Free),
        2 => (any_group(), of(1..40u64)).prop_map(|(group, ms)| RandomOp::Pause(group, ms)),
        4 => any_group().prop_map(RandomOp::Resume),
        3 => (0..3u8, group_changes()).prop_map(|(g, changes)| RandomOp::GroupSet(g, changes)),
        2 => changes().prop_map(RandomOp::Alter),
        2 => schedule(),
        1 => (0..2u8).prop_map(RandomOp::Unschedule),
        2 => (0..2u8, any::<bool>()).prop_map(|(n, paused)| RandomOp::PauseSchedule(n, paused)),
    ]
}

/// A plan of options and up to `most` steps.
pub fn plan(most: usize) -> impl Strategy<Value = Plan> {
    plan_with(most, 1)
}

/// A plan of which many steps are a PURGE.
pub fn purging_plan(most: usize) -> impl Strategy<Value = Plan> {
    plan_with(most, 12)
}

/// A plan of a queue with a breaker, in which no failure kills.
pub fn breaking_plan(most: usize) -> impl Strategy<Value = Plan> {
    (plan(most), breaker()).prop_map(|(mut plan, breaker)| {
        plan.options.breaker = Some(Some(breaker));
        plan.options.retries = Some(-1);
        plan
    })
}

fn plan_with(most: usize, purges: u32) -> impl Strategy<Value = Plan> {
    let wait = prop_oneof![3 => Just(0u64), 3 => 1..8u64, 1 => 8..50u64];
    let step = (wait, op(purges)).prop_map(|(wait, op)| Step { wait, op });
    let options = prop_oneof![Just(Changes::default()), changes()];
    (options, vec(step, 1..most)).prop_map(|(options, steps)| Plan { options, steps })
}

/// Messages that all become due within a few milliseconds.
pub fn burst() -> impl Strategy<Value = Vec<NewMessage>> {
    let new_message = (new_message(), 8..=10u64).prop_map(|(new_message, ms)| NewMessage {
        id: None,
        due: When::After(ms),
        // Leases last, because only the order of messages that become due together is
        // tested. No message expires either: a group may keep the position that it owes
        // to an expired message that is not moved to dead yet.
        choices: Choices {
            lease: None,
            ttl: None,
            rare: None,
            ..new_message.choices.clone()
        },
        ..new_message
    });
    vec(new_message, 1..30)
}
