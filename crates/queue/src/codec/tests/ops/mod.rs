//! Generates random operations.

mod options;

use std::borrow::Cow;
use std::num::NonZeroU64;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use smallvec::SmallVec;

use crate::codec::effect::encode_outcomes;
use crate::dead_letters::{Moved, Stays};
use crate::detached::Ties;
use crate::effect::Outcome;
use crate::message::after::Park;
use crate::message::kin::Delta;
use crate::message::state::State;
use crate::op::*;
use crate::schedule::recurrence::Recurrence;
use crate::schedule::{Limits, Missed, Overlap};
use crate::{Op, MAX_EXACT};
use options::{choices, due, limit, priority, rate};

pub use options::changes;

/// The size of numbers: of any size to test the encodings, or small so that operations of
/// a sequence meet the same messages and groups.
#[derive(Clone, Copy, PartialEq)]
pub enum Scale {
    Any,
    Small,
}

const ACTS: [FindAct; 3] = [FindAct::Redrive, FindAct::Cancel, FindAct::Purge];

impl Scale {
    /// The number of a message.
    fn seq(self) -> BoxedStrategy<u64> {
        match self {
            Scale::Any => (0..=MAX_EXACT).boxed(),
            Scale::Small => (1..60u64).boxed(),
        }
    }

    fn ms(self) -> BoxedStrategy<u64> {
        match self {
            Scale::Any => prop_oneof![0..200u64, 0..=MAX_EXACT, Just(MAX_EXACT)].boxed(),
            Scale::Small => (0..60u64).boxed(),
        }
    }

    fn some(self) -> BoxedStrategy<u64> {
        self.ms().prop_map(|n| n.max(1)).boxed()
    }

    fn receipt(self) -> BoxedStrategy<u64> {
        match self {
            Scale::Any => prop_oneof![0..=MAX_EXACT, Just(0)].boxed(),
            // A placeholder. The primary replaces it by a receipt that it has
            // given out.
            Scale::Small => (0..12u64).boxed(),
        }
    }

    fn name(self) -> BoxedStrategy<Cow<'static, [u8]>> {
        let few = select(vec!["a", "b", "c", "d"]).prop_map(|s| Cow::Borrowed(s.as_bytes()));
        match self {
            Scale::Any => prop_oneof![few, vec(any::<u8>(), 1..40).prop_map(Cow::Owned)].boxed(),
            Scale::Small => few.boxed(),
        }
    }
}

fn payload() -> impl Strategy<Value = &'static [u8]> {
    select(vec!["", "x", "hello", "a somewhat longer payload"]).prop_map(str::as_bytes)
}

fn text() -> impl Strategy<Value = Cow<'static, [u8]>> {
    payload().prop_map(Cow::Borrowed)
}

fn send(scale: Scale) -> impl Strategy<Value = Send<'static>> {
    let parts = (
        vec(payload(), 1..4),
        option::weighted(0.4, scale.name()),
        // The send has no REPLACE, has REPLACE, or has RERUN as well.
        0..3u8,
        due(scale),
        option::weighted(0.6, scale.name()),
        priority(),
        choices(scale),
        option::weighted(0.2, any::<u64>()),
        prop::bool::weighted(0.1),
        option::weighted(0.2, (scale.name(), 1..MAX_EXACT)),
    );
    parts.prop_map(
        |(
            mut payloads,
            id,
            replace,
            due,
            group,
            priority,
            mut choices,
            new_salt,
            if_group,
            dedup,
        )| {
            if id.is_some() || dedup.is_some() {
                payloads.truncate(1);
            }
            let replaces = replace > 0 && id.is_some();
            if !replaces {
                choices.change_rare(|rare| rare.max_wait = None);
            }
            Send {
                if_group: if_group && group.is_some(),
                dedup: dedup.map(|(name, ms)| {
                    let name = (*name).into();
                    Box::new(DedupId { name, ms })
                }),
                payloads: SmallVec::from_vec(payloads),
                replace: replaces,
                rerun: replaces && replace > 1,
                new_salt: new_salt.filter(|_| id.is_none()),
                id,
                due,
                group,
                priority,
                choices,
            }
        },
    )
}

fn receipts(scale: Scale) -> impl Strategy<Value = Receipts> {
    vec(scale.receipt(), 0..4).prop_map(SmallVec::from_vec)
}

fn fetch(scale: Scale) -> impl Strategy<Value = Fetch<'static>> {
    let parts = (
        prop_oneof![2 => Just(1u64), 1 => 1..6u64],
        option::weighted(0.2, scale.some()),
        option::weighted(0.4, scale.name()),
        option::weighted(0.2, scale.name()),
        prop_oneof![2 => Just(1u64), 1 => 1..4u64],
        option::weighted(0.2, scale.some()),
        receipts(scale),
        prop::bool::weighted(0.15),
        (
            option::weighted(0.4, select(vec!["t", "u"])),
            option::weighted(0.3, text()),
        ),
    );
    parts.prop_map(
        |(count, lease, consumer, group, per_group, max_bytes, acks, no_ack, (token, result))| {
            Fetch {
                count,
                lease,
                token: token
                    .filter(|_| consumer.is_some() && !no_ack)
                    .map(|token| token.as_bytes().into()),
                consumer,
                group,
                per_group,
                max_bytes,
                results: result.map_or(Vec::new(), |result| vec![result; acks.len()]),
                acks,
                no_ack,
            }
        },
    )
}

fn ack_send(scale: Scale) -> impl Strategy<Value = AckSend<'static>> {
    let sends = vec(send(scale), 0..4).prop_map(|mut sends| {
        for send in &mut sends {
            send.payloads.truncate(1);
        }
        sends
    });
    let signal = (scale.name(), text()).prop_map(|(id, text)| Signal { id, text });
    let parts = (
        option::weighted(0.8, scale.receipt()),
        option::of(text()),
        sends,
        vec(signal, 0..3),
    );
    parts.prop_map(|(receipt, result, sends, signals)| AckSend {
        receipt,
        result: result.filter(|_| receipt.is_some()),
        sends,
        signals,
    })
}

fn nack(scale: Scale) -> impl Strategy<Value = Op<'static>> {
    let kind = prop_oneof![
        2 => Just(NackKind::Backoff),
        1 => scale.ms().prop_map(NackKind::Delay),
        1 => Just(NackKind::Silent),
        1 => scale.some().prop_map(NackKind::Snooze),
        1 => option::of(scale.some()).prop_map(|ms| NackKind::Park(Park {
            ms: ms.and_then(NonZeroU64::new),
        })),
        1 => Just(NackKind::Fatal),
    ];
    let pause = (select(vec![Paused::Group, Paused::Queue]), scale.some());
    let parts = (
        receipts(scale),
        kind,
        option::of(text()),
        any::<u64>(),
        option::weighted(0.3, text()),
        option::weighted(0.2, pause.prop_map(|(of, ms)| NackPause { of, ms })),
    );
    parts.prop_map(|(receipts, kind, error, random, note, pause)| Op::Nack {
        receipts,
        kind,
        error,
        random,
        note,
        pause,
    })
}

fn schedule_limits(scale: Scale) -> impl Strategy<Value = Limits> {
    let parts = (
        option::weighted(0.2, scale.ms()),
        option::weighted(0.2, scale.some()),
        option::weighted(0.2, scale.ms()),
    );
    parts.prop_map(|(until, times, jitter)| Limits {
        until,
        times,
        jitter: jitter.unwrap_or(0),
    })
}

fn schedule(scale: Scale) -> impl Strategy<Value = Op<'static>> {
    let every = (scale.some(), scale.ms(), any::<bool>()).prop_map(|(period, start, given)| {
        Recurrence::Every {
            // A shorter period would fire so often that a test does nothing
            // else.
            period: period.max(7),
            start,
            start_given: given,
        }
    });
    let cron = select(vec![
        ("*/5 * * * *", None),
        ("@daily", Some("Europe/Berlin")),
    ])
    .prop_map(|(expr, zone)| Recurrence::cron(expr, zone).unwrap());
    let parts = (
        scale.name(),
        prop_oneof![4 => every, 1 => cron],
        send(scale),
        select(vec![Missed::Skip, Missed::Once, Missed::All]),
        select(vec![Overlap::Queue, Overlap::Skip]),
        schedule_limits(scale),
    );
    parts.prop_map(|(name, rule, mut send, missed, overlap, limits)| {
        send.payloads.truncate(1);
        send.id = None;
        send.replace = false;
        send.rerun = false;
        send.dedup = None;
        send.due = DueTime::Now;
        send.new_salt = None;
        send.choices.change_rare(|rare| {
            rare.expire_at = None;
            rare.max_wait = None;
            rare.kin = None;
        });
        Op::Schedule(NewSchedule {
            name,
            rule,
            send,
            missed,
            overlap,
            limits: (limits != Limits::default()).then(|| Box::new(limits)),
        })
    })
}

fn group_set(scale: Scale) -> impl Strategy<Value = Op<'static>> {
    let changes = (
        option::of(1..4u64),
        option::of(0..4u64),
        option::of(rate(scale)),
    );
    (scale.name(), changes).prop_map(|(group, (weight, concurrency, rate))| Op::GroupSet {
        group,
        changes: GroupChanges {
            weight,
            concurrency,
            rate,
        },
    })
}

fn removal(scale: Scale) -> impl Strategy<Value = Removal<'static>> {
    let seq = match scale {
        Scale::Any => (1..MAX_EXACT).boxed(),
        Scale::Small => (1..30u64).boxed(),
    };
    let some = prop_oneof![
        vec(seq.clone(), 1..12).boxed(),
        (seq, 1..50u64)
            .prop_map(|(first, count)| (first..(first + count).min(MAX_EXACT)).collect())
            .boxed()
    ];
    let messages = some.prop_map(|mut seqs: Vec<_>| {
        seqs.sort_unstable();
        seqs.dedup();
        Removal::Messages(seqs)
    });
    prop_oneof![
        4 => messages,
        1 => vec(scale.name(), 1..4).prop_map(Removal::Holds),
        1 => Just(Removal::TakenIds),
    ]
}

fn moved(scale: Scale) -> impl Strategy<Value = Moved<'static>> {
    let gone = vec((scale.seq(), option::weighted(0.3, scale.name())), 0..5);
    let stays = option::weighted(0.3, select(Stays::ALL.to_vec()));
    (gone, stays).prop_map(|(gone, stays)| Moved { gone, stays })
}

fn counted(scale: Scale) -> impl Strategy<Value = Counted<'static>> {
    const MOST: i64 = MAX_EXACT as i64;
    let count = || prop_oneof![4 => -2..3i64, 1 => -MOST..=MOST];
    let counts = [count(), count(), count(), count(), count()];
    let one = (scale.name(), counts, any::<bool>(), any::<bool>());
    let one = one.prop_map(|(id, counts, dies, dies_later)| CountedOne {
        id,
        delta: Delta::of(counts, dies),
        dies_later,
    });
    (select(vec!["q", "r"]), vec(one, 0..4)).prop_map(|(from, of)| Counted {
        from: from.as_bytes().into(),
        of,
    })
}

/// An operation of any kind.
pub fn op(scale: Scale) -> BoxedStrategy<Op<'static>> {
    let name = move || scale.name();
    let ids = move || vec(scale.name(), 0..3);
    let maybe = move || option::weighted(0.5, scale.name());
    prop_oneof![
        16 => send(scale).prop_map(Op::Send),
        16 => fetch(scale).prop_map(Op::fetch),
        8 => (receipts(scale), option::of(text()))
            .prop_map(|(receipts, result)| Op::Ack { receipts, result }),
        2 => (receipts(scale), scale.ms(), option::of(text()))
            .prop_map(|(receipts, cost, result)| Op::AckCost { receipts, cost, result }),
        2 => limit(scale),
        4 => ack_send(scale).prop_map(Op::AckSend),
        2 => (receipts(scale), text()).prop_map(|(receipts, result)| {
            let results = vec![result; receipts.len()];
            Op::AckEach { receipts, results }
        }),
        8 => nack(scale),
        2 => (scale.some(), receipts(scale), option::of(text()))
            .prop_map(|(ms, receipts, note)| Op::Touch { ms, receipts, note }),
        2 => (scale.some(), receipts(scale)).prop_map(|(ms, receipts)| Op::Grace { ms, receipts }),
        2 => receipts(scale).prop_map(|receipts| Op::EndLeases { receipts }),
        1 => Just(Op::Tick),
        1 => Just(Op::Duplicate),
        2 => changes(scale).prop_map(Op::Alter),
        1 => (scale.ms(), any::<bool>())
            .prop_map(|(to, skip_fires)| Op::Advance { to, skip_fires }),
        2 => ids().prop_map(|ids| Op::Cancel { ids }),
        2 => (name(), due(scale)).prop_map(|(id, due)| Op::Reschedule { id, due }),
        2 => (name(), text()).prop_map(|(id, payload)| Op::Update { id, payload }),
        3 => (name(), text()).prop_map(|(id, text)| Op::Signal { id, text }),
        1 => ids().prop_map(|ids| Op::Redrive(Redrive::Ids(ids))),
        2 => prop_oneof![1..5u64, Just(u64::MAX)].prop_map(|n| Op::Redrive(Redrive::Oldest(n))),
        2 => (option::of(select(State::ALL.to_vec())), maybe())
            .prop_map(|(state, group)| Op::Purge { state, group }),
        3 => select(State::ALL.to_vec()).prop_map(|state| Op::Purge {
            state: Some(state),
            group: None,
        }),
        2 => (select(ACTS.to_vec()), vec(scale.seq(), 0..5))
            .prop_map(|(act, seqs)| Op::FindDo { act, seqs }),
        4 => removal(scale).prop_map(Op::Remove),
        2 => (maybe(), option::of(scale.some())).prop_map(|(group, ms)| Op::Pause { group, ms }),
        2 => maybe().prop_map(|group| Op::Resume { group }),
        2 => group_set(scale),
        1 => schedule(scale),
        1 => name().prop_map(|name| Op::Unschedule { name }),
        1 => (name(), any::<bool>())
            .prop_map(|(name, paused)| Op::PauseSchedule { name, paused }),
        1 => (scale.ms(), any::<bool>()).prop_map(|(since, skip)| Op::CatchUp { since, skip }),
        4 => moved(scale).prop_map(Op::Moved),
        4 => counted(scale).prop_map(Op::Children),
        2 => any::<[bool; 3]>().prop_map(|[events, dead_to, parents]| {
            Op::Detach(Ties { events, dead_to, parents })
        }),
        1 => (name(), name(), vec(option::of(any::<i64>()), 1..4)).prop_map(|(consumer, token, numbers)| {
            let outcomes = numbers.into_iter().map(|number| number.map(Outcome::Integer));
            let outcomes = encode_outcomes(&outcomes.collect::<Vec<_>>()).into();
            Op::Applied(Applied { consumer, token, outcomes })
        }),
    ]
    .boxed()
}
