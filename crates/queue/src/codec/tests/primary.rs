//! Generates histories of a queue, and replicates them like a primary.

use proptest::collection::vec;
use proptest::prelude::*;

use super::ops::{changes, op, Scale};
use crate::codec::log_entry::{Creation, LogEntry};
use crate::codec::verbatim;
use crate::dead_letters::Moved;
use crate::message::state::State;
use crate::op::{AckSend, Fetch, NackKind, Receipts, Redrive, Send};
use crate::settings::{Clock, Settings};
use crate::transition::Transition;
use crate::{Done, Moment, Op, Queue, Receipt};

/// One event on a primary.
#[derive(Debug, Clone)]
pub struct Act {
    /// The time that passes before the event, in ms.
    passes: u64,
    /// The greatest number of due events that are processed before it.
    steps: u64,
    /// How many purged messages are freed after it.
    swept: usize,
    /// The operation; `None` if only due events are processed.
    op: Option<Op<'static>>,
}

fn act() -> impl Strategy<Value = Act> {
    let steps = prop_oneof![4 => 0..4u64, 2 => Just(1_000_000)];
    let swept = prop_oneof![4 => Just(0usize), 1 => 1..4usize];
    let op = prop_oneof![5 => op(Scale::Small).prop_map(Some), 1 => Just(None)];
    (prop_oneof![2 => Just(0u64), 3 => 0..8u64], steps, swept, op).prop_map(
        |(passes, steps, swept, op)| Act {
            passes,
            steps,
            swept,
            op,
        },
    )
}

pub fn acts(most: usize) -> impl Strategy<Value = Vec<Act>> {
    vec(act(), 1..most)
}

/// Enough dead messages that they are redriven in slices.
fn many_redriven() -> Vec<Act> {
    let send = |group: Option<&'static [u8]>| {
        let mut send = Send::plain(b"");
        send.payloads = smallvec::smallvec![&b"x"[..]; 150];
        send.group = group.map(Into::into);
        Op::Send(send)
    };
    let fetch = Fetch {
        count: 300,
        per_group: 150,
        lease: Some(1_000),
        ..Fetch::one()
    };
    let nack = Op::Nack {
        receipts: (1..=300).collect(),
        kind: NackKind::Fatal,
        error: None,
        random: 0,
        note: None,
        pause: None,
    };
    at_once([
        send(None),
        send(Some(b"a")),
        Op::fetch(fetch),
        nack,
        Op::Redrive(Redrive::Oldest(u64::MAX)),
    ])
}

/// Operations between which no time passes and no due event is processed.
fn at_once(ops: impl IntoIterator<Item = Op<'static>>) -> Vec<Act> {
    let act = |op| Act {
        passes: 0,
        steps: 0,
        swept: 0,
        op: Some(op),
    };
    ops.into_iter().map(act).collect()
}

/// Enough groups, each held by running or failed messages, that they become ready one
/// after the other once those messages are purged.
fn many_held(state: State) -> Vec<Act> {
    let groups = [&b"a"[..], b"b", b"c", b"d", b"e"];
    let send = |group: &&'static [u8]| {
        let mut send = Send::plain(b"");
        send.payloads = smallvec::smallvec![&b"x"[..]; 3];
        send.group = Some((*group).into());
        Op::Send(send)
    };
    let fetch = Fetch {
        count: 10,
        per_group: 2,
        lease: Some(1_000),
        ..Fetch::one()
    };
    let nack = Op::Nack {
        receipts: (1..=7).collect(),
        kind: NackKind::Delay(20),
        error: None,
        random: 0,
        note: None,
        pause: None,
    };
    let purge = Op::Purge {
        state: Some(state),
        group: None,
    };
    let ops = groups.iter().map(send);
    at_once(ops.chain([Op::fetch(fetch), nack, purge]))
}

/// A random history. Some begin with a queue in the middle of a long operation.
pub fn history(most: usize) -> impl Strategy<Value = Vec<Act>> {
    let busy = prop_oneof![
        Just(many_redriven()),
        Just(many_held(State::Retry)),
        Just(many_held(State::Running)),
    ];
    let busy = (busy, acts(most)).prop_map(|(first, acts)| first.into_iter().chain(acts).collect());
    prop_oneof![8 => acts(most), 2 => busy]
}

fn settings() -> impl Strategy<Value = Settings> {
    changes(Scale::Small).prop_map(|changes| {
        Settings {
            lease: 10,
            ..Settings::default()
        }
        .with(&changes)
    })
}

fn clock() -> impl Strategy<Value = Clock> {
    prop_oneof![4 => Just(Clock::Server), 1 => Just(Clock::Manual(3))]
}

/// A queue and its log entries.
pub struct Primary {
    pub queue: Queue,
    pub us: u64,
    pub issued: Vec<Receipt>,
    /// The transitions of messages that no test has taken.
    pub transitions: Vec<Transition>,
    pub told: Vec<Told>,
}

/// The form in which an operation was replicated.
pub enum Told {
    LogEntry(Vec<u8>),
    /// Verbatim, as the client's command.
    Command(Box<Op<'static>>),
}

impl Told {
    /// The log entry that applies the operation to `queue`.
    pub fn record(&self, queue: &Queue) -> Vec<u8> {
        match self {
            Told::LogEntry(bytes) => bytes.clone(),
            Told::Command(op) => encoded(&verbatim::log_entry(queue, op)),
        }
    }
}

fn encoded(record: &LogEntry) -> Vec<u8> {
    let mut bytes = Vec::new();
    record.encode_into(&mut bytes);
    bytes
}

impl Primary {
    pub fn new(creation: &Creation) -> Primary {
        let mut primary = Primary::of(creation.queue(), 5_000);
        let moment = Moment::at_us(primary.us);
        primary.tell(LogEntry::of(moment, 0, Some(creation.clone()), &Op::Tick));
        primary
    }

    pub fn of(queue: Queue, us: u64) -> Primary {
        Primary {
            queue,
            us,
            issued: Vec::new(),
            transitions: Vec::new(),
            told: Vec::new(),
        }
    }

    fn tell(&mut self, record: LogEntry) {
        self.told.push(Told::LogEntry(encoded(&record)));
    }

    /// Replaces each small number by the receipt that was given out that many receipts
    /// ago, and by 0 if there is none.
    fn real(&self, receipts: &mut Receipts) {
        for receipt in receipts {
            let at = (*receipt as usize).checked_sub(1);
            let from_last = at.and_then(|at| self.issued.len().checked_sub(at + 1));
            *receipt = from_last.map_or(0, |at| self.issued[at]);
        }
    }

    pub fn act(&mut self, act: &Act) -> Option<Done> {
        self.us += act.passes * 1000 + 1;
        // MOVED follows another operation, at the moment of that.
        let follows = matches!(act.op, Some(Op::Moved(_)));
        let moment = match follows {
            true => self.queue.last_moment(),
            false => Moment::at_us(self.us),
        };
        let now = self.queue.now(moment);
        let mut steps = 0;
        if !follows && self.queue.has_work(now) {
            steps = self.queue.advance(now, act.steps).steps;
        }
        if self.queue.owes() {
            let effects = self.queue.take_effects();
            self.transitions
                .extend(effects.told.unwrap_or_default().transitions);
            self.tell(LogEntry::of(
                moment,
                std::mem::take(&mut steps),
                None,
                &Op::Tick,
            ));
            self.settle();
        }
        let mut op = act.op.clone().unwrap_or(Op::Tick);
        match &mut op {
            Op::Fetch(fetch) => self.real(&mut fetch.to_mut().acks),
            Op::Ack { receipts, .. }
            | Op::Nack { receipts, .. }
            | Op::Touch { receipts, .. }
            | Op::Grace { receipts, .. }
            | Op::EndLeases { receipts, .. } => self.real(receipts),
            Op::AckSend(AckSend {
                receipt: Some(receipt),
                ..
            }) => {
                let mut receipts = smallvec::smallvec![*receipt];
                self.real(&mut receipts);
                *receipt = receipts[0];
            }
            // A manual clock can only go forward.
            Op::Advance { to, .. } => *to += self.queue.last_seen(),
            _ => {}
        }
        // The last receipt of the server is that of this queue, the only one.
        let of_command = match steps {
            0 => verbatim::moment(&self.queue, &op, moment, self.queue.last_receipt()),
            _ => None,
        };
        let done = self.queue.apply(&op, of_command.unwrap_or(moment)).ok();
        if let Some(Done::Fetched(given)) = &done {
            self.issued
                .extend(given.iter().map(|d| d.receipt).filter(|r| *r > 0));
        }
        let effects = self.queue.take_effects();
        let told = effects.told.map(|told| *told).unwrap_or_default();
        self.transitions.extend(told.transitions);
        if effects.changed {
            match (of_command, &done) {
                (Some(_), Some(_)) => self.told.push(Told::Command(Box::new(op))),
                (_, None) => self.tell(LogEntry::of(moment, steps, None, &Op::Tick)),
                (_, Some(done)) if done.is_duplicate() => {
                    self.tell(LogEntry::of(moment, steps, None, &Op::Duplicate));
                }
                (_, Some(_)) => self.tell(LogEntry::of(moment, steps, None, &op)),
            }
        }
        self.settle();
        self.queue.free_garbage(act.swept);
        done
    }

    /// Settles what the queue owes: its reports are taken, and its dead messages stay.
    fn settle(&mut self) {
        while self
            .queue
            .take_owed(b"q")
            .is_some_and(|owed| owed.letters.is_some())
        {
            let (moment, op) = (self.queue.last_moment(), Op::Moved(Moved::default()));
            self.queue.apply(&op, moment).unwrap();
            let effects = self.queue.take_effects();
            self.transitions
                .extend(effects.told.unwrap_or_default().transitions);
            self.tell(LogEntry::of(moment, 0, None, &op));
        }
    }
}

pub fn creation() -> impl Strategy<Value = Creation> {
    (settings(), clock(), any::<u64>()).prop_map(|(settings, clock, salt)| Creation {
        settings,
        clock,
        salt,
    })
}
