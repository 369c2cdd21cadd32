//! The operation that a random operation stands for, in the state of the queue at that time.

use std::borrow::Cow;

use super::{Name, NewMessage, RandomOp, When, START};
use crate::op::{
    AckSend, DedupId, DueTime, Fetch, NewSchedule, Op, Receipts, Redrive, Removal, Send, Signal,
};
use crate::queue::model::Model;
use crate::schedule::recurrence::Recurrence;
use crate::schedule::{Limits, Missed};
use crate::{Receipt, Seq};
const IDS: [&[u8]; 4] = [b"a", b"b", b"c", b"d"];
const GROUPS: [&[u8]; 3] = [b"g", b"h", b"i"];
const SCHEDULES: [&[u8]; 2] = [b"s", b"t"];
const BYTES: [u8; 8] = [b'x'; 8];

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

/// The numbers of the messages at these places in the queue, and one that no message has.
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

fn send(count: u8, new_message: &NewMessage) -> Send<'static> {
    let mut choices = new_message.choices.clone();
    if new_message.group.is_none() {
        choices.score = None;
    }
    let replace = new_message.replace && new_message.id.is_some() && count == 1;
    choices.change_rare(|rare| {
        rare.max_wait = rare.max_wait.filter(|_| replace);
        rare.expire_at = rare.expire_at.map(|at| START + at);
    });
    Send {
        payloads: (0..count).map(|_| bytes(new_message.size)).collect(),
        id: new_message
            .id
            .filter(|_| count == 1)
            .map(|n| IDS[usize::from(n)].into()),
        replace,
        rerun: replace && new_message.rerun,
        due: due(new_message.due),
        group: group(new_message.group),
        priority: new_message.priority,
        choices,
        if_group: new_message.if_group && new_message.group.is_some(),
        dedup: new_message.dedup.filter(|_| count == 1).map(|(n, ms)| {
            let name = IDS[usize::from(n)].into();
            Box::new(DedupId { name, ms })
        }),
        new_salt: new_message
            .new_salt
            .filter(|_| new_message.id.is_none() || count != 1),
    }
}

/// The message that a schedule sends.
fn scheduled(new_message: &NewMessage) -> Send<'static> {
    let mut send = Send {
        id: None,
        replace: false,
        rerun: false,
        dedup: None,
        due: DueTime::Now,
        new_salt: None,
        ..send(1, new_message)
    };
    send.choices.change_rare(|rare| {
        rare.expire_at = None;
        rare.max_wait = None;
    });
    send
}

impl RandomOp {
    /// The operation without BATCH and AFTER of the messages that it sends.
    pub fn without_batches(&self) -> RandomOp {
        let mut op = self.clone();
        match &mut op {
            RandomOp::Send(_, new_message) | RandomOp::Schedule { new_message, .. } => {
                new_message.choices.rare = None
            }
            RandomOp::AckSend(_, messages, _) => {
                messages
                    .iter_mut()
                    .for_each(|new_message| new_message.choices.rare = None);
            }
            _ => {}
        }
        op
    }

    /// The operation to apply to a queue that is in the state of the model.
    pub fn resolve(&self, model: &Model) -> Op<'static> {
        match self {
            RandomOp::Tick => Op::Tick,
            RandomOp::Send(count, new_message) => Op::Send(send(*count, new_message)),
            RandomOp::Fetch {
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
            RandomOp::Ack(back) => Op::Ack {
                receipts: receipts(back, model),
                result: None,
            },
            RandomOp::AckSend(back, letters, signal) => Op::AckSend(AckSend {
                signals: signal
                    .iter()
                    .map(|name| Signal {
                        id: id(*name, model),
                        text: bytes(2).into(),
                    })
                    .collect(),
                receipt: back.map(|back| receipts(&[back], model)[0]),
                result: None,
                sends: letters
                    .iter()
                    .map(|new_message| send(1, new_message))
                    .collect(),
            }),
            RandomOp::Nack(back, kind, note, pause) => Op::Nack {
                receipts: receipts(back, model),
                kind: *kind,
                error: note.map(|size| bytes(size).into()),
                random: 0,
                note: note.map(|size| bytes(size).into()),
                pause: *pause,
            },
            RandomOp::Touch(ms, back, note) => Op::Touch {
                ms: *ms,
                receipts: receipts(back, model),
                note: note.map(|size| bytes(size).into()),
            },
            RandomOp::Grace(ms, back) => Op::Grace {
                ms: *ms,
                receipts: receipts(back, model),
            },
            RandomOp::EndLeases(back) => Op::EndLeases {
                receipts: receipts(back, model),
            },
            RandomOp::Cancel(names) => Op::Cancel {
                ids: ids(names, model),
            },
            RandomOp::Reschedule(name, when) => Op::Reschedule {
                id: id(*name, model),
                due: due(*when),
            },
            RandomOp::Update(name, size) => Op::Update {
                id: id(*name, model),
                payload: bytes(*size).into(),
            },
            RandomOp::Signal(name, size) => Op::Signal {
                id: id(*name, model),
                text: bytes(*size).into(),
            },
            RandomOp::Redrive(n) => Op::Redrive(Redrive::Oldest(*n)),
            RandomOp::RedriveIds(names) => Op::Redrive(Redrive::Ids(ids(names, model))),
            RandomOp::Find(state, act, count, reverse) => {
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
            RandomOp::Purge(state, of) => Op::Purge {
                state: *state,
                group: group(*of),
            },
            RandomOp::Remove(at) => Op::Remove(Removal::Messages(seqs(at, model))),
            RandomOp::Free(of) => Op::Remove(match group(*of) {
                Some(group) => Removal::Holds(vec![group]),
                None => Removal::TakenIds,
            }),
            RandomOp::Pause(of, ms) => Op::Pause {
                group: group(*of),
                ms: *ms,
            },
            RandomOp::Resume(of) => Op::Resume { group: group(*of) },
            RandomOp::GroupSet(n, changes) => Op::GroupSet {
                group: GROUPS[usize::from(*n)].into(),
                changes: *changes,
            },
            RandomOp::Alter(changes) => Op::Alter(changes.clone()),
            RandomOp::Schedule {
                name,
                period,
                start,
                overlap,
                limits,
                new_message,
            } => Op::Schedule(NewSchedule {
                name: SCHEDULES[usize::from(*name)].into(),
                rule: Recurrence::every(*period, start.map(|at| START + at), model.now).unwrap(),
                send: scheduled(new_message),
                missed: Missed::Once,
                overlap: *overlap,
                limits: (*limits != Limits::default()).then(|| {
                    Box::new(Limits {
                        until: limits.until.map(|at| START + at),
                        ..*limits
                    })
                }),
            }),
            RandomOp::PauseSchedule(n, paused) => Op::PauseSchedule {
                name: SCHEDULES[usize::from(*n)].into(),
                paused: *paused,
            },
            RandomOp::Unschedule(n) => Op::Unschedule {
                name: SCHEDULES[usize::from(*n)].into(),
            },
        }
    }
}
