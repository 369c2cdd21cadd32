//! The operations of the random tests, in a form that keeps its meaning when
//! proptest shrinks a plan: messages and receipts are named by position, not by
//! value.

use std::borrow::Cow;
use std::fmt;

use super::model::Model;
use crate::message::state::State;
use crate::message::Choices;
use crate::op::{
    AckSend, DueTime, Fetch, FindAct, GroupChanges, NackKind, NackPause, NewSchedule, Op,
    Piecemeal, Receipts, Redrive, Removal, Send,
};
use crate::schedule::recurrence::Recurrence;
use crate::schedule::{Limits, Missed, Overlap};
use crate::settings::Changes;
use crate::{Millis, Receipt, Seq};

/// Names a message.
#[derive(Debug, Clone, Copy)]
pub enum Name {
    /// By one of the ids that tests give.
    Given(u8),
    /// By the index of the message in the queue (modulo their number), if there is
    /// one.
    At(u8),
}

/// A due time.
#[derive(Debug, Clone, Copy)]
pub enum When {
    Now,
    After(Millis),
    /// This many milliseconds after the start of the test.
    At(Millis),
}

/// The arguments of a SEND.
#[derive(Clone)]
pub struct Letter {
    pub size: u8,
    pub id: Option<u8>,
    pub replace: bool,
    pub due: When,
    pub group: Option<u8>,
    pub priority: i8,
    pub choices: Choices,
    pub if_group: bool,
    pub new_salt: Option<u64>,
}

/// One operation. A receipt is given by how many were given out after it.
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
        /// The name of the consumer, and the token if it has one.
        consumer: Option<(u8, Option<u8>)>,
    },
    Ack(Vec<u8>),
    /// Without a receipt, as in a queue that only receives messages.
    AckSend(Option<u8>, Vec<Letter>),
    Nack(Vec<u8>, NackKind, Option<u8>, Option<NackPause>),
    Touch(Millis, Vec<u8>, Option<u8>),
    EndLeases(Vec<u8>),
    Grace(Millis, Vec<u8>),
    Cancel(Vec<Name>),
    Reschedule(Name, When),
    Update(Name, u8),
    Redrive(u64),
    RedriveIds(Vec<Name>),
    /// What a search does with the messages that it has found in a state: with this
    /// many, without the last or, if the flag is set, the first.
    Find(State, FindAct, u8, bool),
    Purge(Option<State>, Option<u8>),
    /// Of the leased messages of a group, or of the dead ones (`None`), at most
    /// this many.
    PurgeSome(Option<u8>, u64),
    /// A slice of a purge: these messages.
    Remove(Vec<u8>),
    /// A slice of a purge: what holds this group, or the ids that are taken.
    Free(Option<u8>),
    Pause(Option<u8>, Option<Millis>),
    Resume(Option<u8>),
    GroupSet(u8, GroupChanges),
    Alter(Changes),
    Schedule {
        name: u8,
        period: Millis,
        start: Option<Millis>,
        overlap: Overlap,
        /// Its end is given in ms after the start of the test.
        limits: Limits,
        letter: Letter,
    },
    Unschedule(u8),
    PauseSchedule(u8, bool),
}

/// An operation, and the time in ms since the one before it.
#[derive(Clone)]
pub struct Step {
    pub wait: Millis,
    pub act: Act,
}

/// The options of a queue and the steps that are applied to it.
#[derive(Clone)]
pub struct Plan {
    pub options: Changes,
    pub steps: Vec<Step>,
}

/// Prints one line for each step, so that a failing plan can be read.
impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "+{} {}", self.wait, said(&self.act))
    }
}

impl fmt::Debug for Letter {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Letter {
            size,
            id,
            replace,
            due,
            group,
            priority,
            choices,
            if_group,
            new_salt,
        } = self;
        let choices = said(choices);
        write!(
            f,
            "size {size} id {id:?} replace {replace} {due:?} group {group:?} \
             priority {priority} {choices} if group {if_group} new salt {new_salt:?}"
        )
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        writeln!(f, "{}", said(&self.options))?;
        self.steps
            .iter()
            .try_for_each(|step| writeln!(f, "{step:?}"))
    }
}

/// Formats a value without the fields that have their default value.
fn said(thing: &impl fmt::Debug) -> String {
    let text = format!("{thing:?}");
    let silent = [": None", ": false", ": []"];
    let fields = text.split(", ").filter_map(|field| {
        let (start, rest) = match field.rfind("{ ") {
            Some(at) => field.split_at(at + 1),
            None => ("", field),
        };
        let is_silent = silent
            .iter()
            .any(|end| rest.trim_end_matches([' ', '}']).ends_with(end));
        let said = if is_silent { start } else { field };
        (!said.is_empty()).then_some(said)
    });
    fields.collect::<Vec<_>>().join(", ")
}

const IDS: [&[u8]; 4] = [b"a", b"b", b"c", b"d"];
const GROUPS: [&[u8]; 3] = [b"g", b"h", b"i"];
const SCHEDULES: [&[u8]; 2] = [b"s", b"t"];
const BYTES: [u8; 8] = [b'x'; 8];
/// The time at which every test begins.
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

/// The numbers of the messages at these places in the queue, and one that nobody has.
fn seqs(at: &[u8], model: &Model) -> Vec<Seq> {
    let there = |at: &u8| Some(model.msgs.get(usize::from(*at))?.seq);
    let mut seqs: Vec<Seq> = at.iter().filter_map(there).collect();
    seqs.push(model.last_seq + 1);
    seqs.sort_unstable();
    seqs.dedup();
    seqs
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
    let replace = letter.replace && letter.id.is_some() && count == 1;
    choices.change_rare(|rare| {
        rare.max_wait = rare.max_wait.filter(|_| replace);
        rare.expire_at = rare.expire_at.map(|at| START + at);
    });
    Send {
        payloads: (0..count).map(|_| bytes(letter.size)).collect(),
        id: letter
            .id
            .filter(|_| count == 1)
            .map(|n| IDS[usize::from(n)].into()),
        replace,
        due: due(letter.due),
        group: group(letter.group),
        priority: letter.priority,
        choices,
        if_group: letter.if_group && letter.group.is_some(),
        new_salt: letter
            .new_salt
            .filter(|_| letter.id.is_none() || count != 1),
    }
}

/// The message that a schedule sends.
fn scheduled(letter: &Letter) -> Send<'static> {
    let mut send = Send {
        id: None,
        replace: false,
        due: DueTime::Now,
        new_salt: None,
        ..send(1, letter)
    };
    send.choices.change_rare(|rare| {
        rare.expire_at = None;
        rare.max_wait = None;
    });
    send
}

impl Act {
    /// The operation without BATCH and AFTER of the messages that it sends.
    pub fn without_batches(&self) -> Act {
        let mut act = self.clone();
        match &mut act {
            Act::Send(_, letter) | Act::Schedule { letter, .. } => letter.choices.rare = None,
            Act::AckSend(_, letters) => {
                letters
                    .iter_mut()
                    .for_each(|letter| letter.choices.rare = None);
            }
            _ => {}
        }
        act
    }

    /// The operation to apply to a queue that is in the state of the model.
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
                consumer,
            } => Op::fetch(Fetch {
                count: *count,
                lease: lease.filter(|_| !no_ack),
                consumer: consumer.map(|(name, _)| IDS[usize::from(name)].into()),
                group: group(*only),
                per_group: if only.is_some() { 1 } else { *per_group },
                max_bytes: *max_bytes,
                acks: receipts(acks, model),
                results: Vec::new(),
                no_ack: *no_ack,
                token: consumer
                    .and_then(|(_, token)| token)
                    .filter(|_| !no_ack)
                    .map(|token| IDS[usize::from(token)].into()),
            }),
            Act::Ack(back) => Op::Ack {
                receipts: receipts(back, model),
                result: None,
            },
            Act::AckSend(back, letters) => Op::AckSend(AckSend {
                receipt: back.map(|back| receipts(&[back], model)[0]),
                result: None,
                sends: letters.iter().map(|letter| send(1, letter)).collect(),
            }),
            Act::Nack(back, kind, note, pause) => Op::Nack {
                receipts: receipts(back, model),
                kind: *kind,
                error: note.map(|size| bytes(size).into()),
                random: 0,
                note: note.map(|size| bytes(size).into()),
                pause: *pause,
            },
            Act::Touch(ms, back, note) => Op::Touch {
                ms: *ms,
                receipts: receipts(back, model),
                note: note.map(|size| bytes(size).into()),
            },
            Act::Grace(ms, back) => Op::Grace {
                ms: *ms,
                receipts: receipts(back, model),
                backs_off: ms % 4 > 0,
            },
            Act::EndLeases(back) => Op::EndLeases {
                receipts: receipts(back, model),
                backs_off: back.len() != 2,
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
            Act::Find(state, act, count, reverse) => {
                let mut found = model.list(*state);
                if *reverse {
                    found.reverse();
                }
                found.truncate(usize::from(*count));
                Op::FindDo {
                    act: *act,
                    seqs: found,
                }
            }
            Act::Purge(state, of) => Op::Purge {
                state: *state,
                group: group(*of),
            },
            Act::PurgeSome(of, most) => Op::PurgeSome {
                of: group(*of).map_or(Piecemeal::Dead, Piecemeal::Leased),
                most: *most,
            },
            Act::Remove(at) => Op::Remove(Removal::Messages(seqs(at, model))),
            Act::Free(of) => Op::Remove(match group(*of) {
                Some(group) => Removal::Holds(vec![group]),
                None => Removal::TakenIds,
            }),
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
                limits,
                letter,
            } => Op::Schedule(NewSchedule {
                name: SCHEDULES[usize::from(*name)].into(),
                rule: Recurrence::every(*period, start.map(|at| START + at), model.now).unwrap(),
                send: scheduled(letter),
                missed: Missed::Once,
                overlap: *overlap,
                limits: (*limits != Limits::default()).then(|| {
                    Box::new(Limits {
                        until: limits.until.map(|at| START + at),
                        ..*limits
                    })
                }),
            }),
            Act::PauseSchedule(n, paused) => Op::PauseSchedule {
                name: SCHEDULES[usize::from(*n)].into(),
                paused: *paused,
            },
            Act::Unschedule(n) => Op::Unschedule {
                name: SCHEDULES[usize::from(*n)].into(),
            },
        }
    }
}
