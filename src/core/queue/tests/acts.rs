//! Random things to do to a queue: few names and short times, so that they
//! meet each other.

use std::borrow::Cow;
use std::fmt;

use proptest::collection::vec;
use proptest::option::{of, weighted};
use proptest::prelude::*;

use super::model::Model;
use crate::core::message::{Choices, State};
use crate::core::op::{
    DueTime, Fetch, GroupChanges, NackKind, NewSchedule, Op, Receipts, Redrive, Send,
};
use crate::core::recurrence::Recurrence;
use crate::core::schedule::{Missed, Overlap};
use crate::core::settings::{Backoff, Changes, OnDead, OnRetry, Rate};
use crate::core::{Millis, Receipt};

/// A message, told in a way that still means something after shrinking.
#[derive(Debug, Clone, Copy)]
pub enum Name {
    /// One of the ids that are given.
    Given(u8),
    /// That of the message at this place in the queue, if there is one.
    At(u8),
}

/// A due time.
#[derive(Debug, Clone, Copy)]
pub enum When {
    Now,
    After(Millis),
    /// So far from the start of the test.
    At(Millis),
}

/// What a SEND says.
#[derive(Clone)]
pub struct Letter {
    pub size: u8,
    pub id: Option<u8>,
    pub replace: bool,
    pub due: When,
    pub group: Option<u8>,
    pub priority: i8,
    pub choices: Choices,
}

/// One thing to do. Receipts are told by how many were given out after them.
#[derive(Debug, Clone)]
pub enum Act {
    Tick,
    Send(u8, Letter),
    Fetch {
        count: u64,
        per_group: u64,
        group: Option<u8>,
        lease: Option<Millis>,
        max_bytes: Option<u64>,
        acks: Vec<u8>,
        no_ack: bool,
    },
    Ack(Vec<u8>),
    Nack(Vec<u8>, NackKind),
    Touch(Millis, Vec<u8>),
    EndLeases(Vec<u8>),
    Cancel(Vec<Name>),
    Reschedule(Name, When),
    Update(Name, u8),
    Redrive(u64),
    RedriveIds(Vec<Name>),
    Purge(Option<State>, Option<u8>),
    Pause(Option<u8>, Option<Millis>),
    Resume(Option<u8>),
    GroupSet(u8, GroupChanges),
    Alter(Changes),
    Schedule {
        name: u8,
        period: Millis,
        start: Option<Millis>,
        overlap: Overlap,
        letter: Letter,
    },
    Unschedule(u8),
}

/// An act and how long after the one before it.
#[derive(Clone)]
pub struct Step {
    pub wait: Millis,
    pub act: Act,
}

/// A queue's options and what is done to it.
#[derive(Clone)]
pub struct Plan {
    pub options: Changes,
    pub steps: Vec<Step>,
}

/// One line a step: a failing plan is there to be read.
impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "+{} {}", self.wait, said(&self.act))
    }
}

impl fmt::Debug for Letter {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Letter { size, id, replace, due, group, priority, choices } = self;
        let choices = said(choices);
        write!(
            f,
            "size {size} id {id:?} replace {replace} {due:?} group {group:?} \
             priority {priority} {choices}"
        )
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        writeln!(f, "{}", said(&self.options))?;
        self.steps.iter().try_for_each(|step| writeln!(f, "{step:?}"))
    }
}

/// A thing as text, without the fields that say nothing.
fn said(thing: &impl fmt::Debug) -> String {
    let text = format!("{thing:?}");
    let silent = [": None", ": false", ": []"];
    let fields = text.split(", ").filter_map(|field| {
        let (start, rest) = match field.rfind("{ ") {
            Some(at) => field.split_at(at + 1),
            None => ("", field),
        };
        let is_silent = silent.iter().any(|end| rest.trim_end_matches([' ', '}']).ends_with(end));
        let said = if is_silent { start } else { field };
        (!said.is_empty()).then_some(said)
    });
    fields.collect::<Vec<_>>().join(", ")
}

const IDS: [&[u8]; 4] = [b"a", b"b", b"c", b"d"];
const GROUPS: [&[u8]; 3] = [b"g", b"h", b"i"];
const SCHEDULES: [&[u8]; 2] = [b"s", b"t"];
const BYTES: [u8; 8] = [b'x'; 8];
/// Where the time of a test begins.
pub const START: Millis = 1000;

fn group(number: Option<u8>) -> Option<Cow<'static, [u8]>> {
    number.map(|n| Cow::Borrowed(GROUPS[usize::from(n)]))
}

fn due(when: When) -> DueTime {
    match when {
        When::Now => DueTime::Now,
        When::After(ms) => DueTime::After(ms),
        When::At(ms) => DueTime::At(START + ms),
    }
}

fn bytes(size: u8) -> &'static [u8] {
    &BYTES[..usize::from(size)]
}

fn id(name: Name, model: &Model) -> Cow<'static, [u8]> {
    match name {
        Name::Given(n) => IDS[usize::from(n)].into(),
        Name::At(_) if model.msgs.is_empty() => Cow::Borrowed(b"nobody"),
        Name::At(n) => model.msgs[usize::from(n) % model.msgs.len()]
            .id
            .clone()
            .into(),
    }
}

fn ids(names: &[Name], model: &Model) -> Vec<Cow<'static, [u8]>> {
    names.iter().map(|name| id(*name, model)).collect()
}

fn receipts(back: &[u8], model: &Model) -> Receipts {
    let receipt = |back: &u8| {
        let at = model.receipts.len().checked_sub(usize::from(*back) + 1);
        at.map_or(1, |at: usize| model.receipts[at]) as Receipt
    };
    back.iter().map(receipt).collect()
}

fn send(count: u8, letter: &Letter) -> Send<'static> {
    let mut choices = letter.choices.clone();
    if letter.group.is_none() {
        choices.score = None;
    }
    Send {
        payloads: (0..count).map(|_| bytes(letter.size)).collect(),
        id: letter
            .id
            .filter(|_| count == 1)
            .map(|n| IDS[usize::from(n)].into()),
        replace: letter.replace && letter.id.is_some() && count == 1,
        due: due(letter.due),
        group: group(letter.group),
        priority: letter.priority,
        choices,
    }
}

impl Act {
    /// The operation that this is for a queue as the model has it.
    pub fn op(&self, model: &Model) -> Op<'static> {
        match self {
            Act::Tick => Op::Tick,
            Act::Send(count, letter) => Op::Send(send(*count, letter)),
            Act::Fetch {
                count,
                per_group,
                group: only,
                lease,
                max_bytes,
                acks,
                no_ack,
            } => Op::Fetch(Fetch {
                count: *count,
                lease: lease.filter(|_| !no_ack),
                consumer: None,
                group: group(*only),
                per_group: if only.is_some() { 1 } else { *per_group },
                max_bytes: *max_bytes,
                acks: receipts(acks, model),
                no_ack: *no_ack,
            }),
            Act::Ack(back) => Op::Ack {
                receipts: receipts(back, model),
                result: None,
            },
            Act::Nack(back, kind) => Op::Nack {
                receipts: receipts(back, model),
                kind: *kind,
                error: None,
                random: 0,
            },
            Act::Touch(ms, back) => Op::Touch {
                ms: *ms,
                receipts: receipts(back, model),
            },
            Act::EndLeases(back) => Op::EndLeases {
                receipts: receipts(back, model),
            },
            Act::Cancel(names) => Op::Cancel {
                ids: ids(names, model),
            },
            Act::Reschedule(name, when) => Op::Reschedule {
                id: id(*name, model),
                due: due(*when),
            },
            Act::Update(name, size) => Op::Update {
                id: id(*name, model),
                payload: bytes(*size).into(),
            },
            Act::Redrive(n) => Op::Redrive(Redrive::Oldest(*n)),
            Act::RedriveIds(names) => Op::Redrive(Redrive::Ids(ids(names, model))),
            Act::Purge(state, of) => Op::Purge {
                state: *state,
                group: group(*of),
            },
            Act::Pause(of, ms) => Op::Pause {
                group: group(*of),
                ms: *ms,
            },
            Act::Resume(of) => Op::Resume { group: group(*of) },
            Act::GroupSet(n, changes) => Op::GroupSet {
                group: GROUPS[usize::from(*n)].into(),
                changes: *changes,
            },
            Act::Alter(changes) => Op::Alter(changes.clone()),
            Act::Schedule {
                name,
                period,
                start,
                overlap,
                letter,
            } => Op::Schedule(NewSchedule {
                name: SCHEDULES[usize::from(*name)].into(),
                rule: Recurrence::every(*period, start.map(|at| START + at), model.now).unwrap(),
                send: Send {
                    id: None,
                    replace: false,
                    due: DueTime::Now,
                    ..send(1, letter)
                },
                missed: Missed::Once,
                overlap: *overlap,
            }),
            Act::Unschedule(n) => Op::Unschedule {
                name: SCHEDULES[usize::from(*n)].into(),
            },
        }
    }
}

fn name() -> impl Strategy<Value = Name> {
    prop_oneof![
        (0..4u8).prop_map(Name::Given),
        (0..12u8).prop_map(Name::At)
    ]
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

fn choices() -> impl Strategy<Value = Choices> {
    let some = (
        of((-2..3i8).prop_map(f64::from)),
        weighted(0.2, 1..50u64),
        weighted(0.2, -1..3i64),
        weighted(0.2, backoff()),
        weighted(0.2, 0..50u64),
    );
    let some = some.prop_map(|(score, lease, retries, backoff, ttl)| Choices {
        score,
        lease,
        retries,
        backoff,
        ttl,
        ..Choices::default()
    });
    prop_oneof![Just(Choices::default()), some]
}

fn letter() -> impl Strategy<Value = Letter> {
    (
        0..4u8,
        weighted(0.4, 0..4u8),
        weighted(0.7, 0..3u8),
        when(),
        prop_oneof![3 => Just(0i8), 1 => -1..2i8],
        choices(),
        prop::bool::weighted(0.4),
    )
        .prop_map(|(size, id, group, due, priority, choices, replace)| Letter {
            size,
            id,
            replace,
            due,
            group,
            priority,
            choices,
        })
}

fn fetch() -> impl Strategy<Value = Act> {
    (
        1..5u64,
        prop_oneof![2 => Just(1u64), 1 => 2..4u64],
        weighted(0.2, 0..3u8),
        weighted(0.2, 1..50u64),
        weighted(0.2, 1..8u64),
        vec(0..6u8, 0..3),
        prop::bool::weighted(0.1),
    )
        .prop_map(
            |(count, per_group, group, lease, max_bytes, acks, no_ack)| Act::Fetch {
                count,
                per_group,
                group,
                lease,
                max_bytes,
                acks,
                no_ack,
            },
        )
}

fn nack_kind() -> impl Strategy<Value = NackKind> {
    prop_oneof![
        3 => Just(NackKind::Backoff),
        2 => (0..30u64).prop_map(NackKind::Delay),
        2 => Just(NackKind::Silent),
        1 => Just(NackKind::Fatal),
    ]
}

fn rate() -> impl Strategy<Value = Rate> {
    // One length of window: how long deliveries are remembered for a longer
    // one that may come is no promise.
    (1..4u64).prop_map(|count| Rate { count, per: 20 })
}

/// Options of a queue, each of them seldom.
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
        weighted(p, prop_oneof![Just(OnRetry::Skip), Just(OnRetry::Block)]),
        weighted(p, prop_oneof![Just(OnDead::Block), Just(OnDead::Continue)]),
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
    })
}

fn group_changes() -> impl Strategy<Value = GroupChanges> {
    (of(1..4u64), of(0..4u64), weighted(0.3, of(rate()))).prop_map(
        |(weight, concurrency, rate)| GroupChanges {
            weight,
            concurrency,
            rate,
        },
    )
}

fn schedule() -> impl Strategy<Value = Act> {
    let overlap = prop_oneof![Just(Overlap::Queue), Just(Overlap::Skip)];
    (0..2u8, 3..40u64, of(0..200u64), overlap, letter()).prop_map(
        |(name, period, start, overlap, letter)| Act::Schedule {
            name,
            period,
            start,
            overlap,
            letter,
        },
    )
}

fn act() -> impl Strategy<Value = Act> {
    let some = || vec(0..6u8, 1..4);
    let any_group = || of(0..3u8);
    let only = || weighted(0.6, prop::sample::select(&State::ALL[..]));
    prop_oneof![
        2 => Just(Act::Tick),
        30 => (prop_oneof![4 => Just(1u8), 1 => 2..4u8], letter())
            .prop_map(|(n, letter)| Act::Send(n, letter)),
        30 => fetch(),
        10 => some().prop_map(Act::Ack),
        14 => (some(), nack_kind()).prop_map(|(r, kind)| Act::Nack(r, kind)),
        3 => (1..60u64, some()).prop_map(|(ms, r)| Act::Touch(ms, r)),
        2 => some().prop_map(Act::EndLeases),
        4 => vec(name(), 1..3).prop_map(Act::Cancel),
        3 => (name(), when()).prop_map(|(name, when)| Act::Reschedule(name, when)),
        2 => (name(), 0..4u8).prop_map(|(name, size)| Act::Update(name, size)),
        2 => prop_oneof![1..4u64, Just(u64::MAX)].prop_map(Act::Redrive),
        3 => vec(name(), 1..4).prop_map(Act::RedriveIds),
        2 => (only(), any_group()).prop_map(|(state, group)| Act::Purge(state, group)),
        2 => (any_group(), of(1..40u64)).prop_map(|(group, ms)| Act::Pause(group, ms)),
        4 => any_group().prop_map(Act::Resume),
        3 => (0..3u8, group_changes()).prop_map(|(g, changes)| Act::GroupSet(g, changes)),
        2 => changes().prop_map(Act::Alter),
        2 => schedule(),
        1 => (0..2u8).prop_map(Act::Unschedule),
    ]
}

/// Options and up to `most` steps.
pub fn plan(most: usize) -> impl Strategy<Value = Plan> {
    let wait = prop_oneof![3 => Just(0u64), 3 => 1..8u64, 1 => 8..50u64];
    let step = (wait, act()).prop_map(|(wait, act)| Step { wait, act });
    let options = prop_oneof![Just(Changes::default()), changes()];
    (options, vec(step, 1..most)).prop_map(|(options, steps)| Plan { options, steps })
}

/// Ungrouped messages that all become due within a few milliseconds.
pub fn burst() -> impl Strategy<Value = Vec<Letter>> {
    let letter = (letter(), 8..=10u64).prop_map(|(letter, ms)| Letter {
        id: None,
        group: None,
        due: When::After(ms),
        // The leases last: only what falls due together is told apart here.
        choices: Choices {
            lease: None,
            ..letter.choices.clone()
        },
        ..letter
    });
    vec(letter, 1..30)
}
