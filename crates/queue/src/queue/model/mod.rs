//! A model of the queue that follows the command contract as directly as possible,
//! and is slow: one list of messages, searched and sorted for every question, and a
//! clock that moves from event to event.
//!
//! It shares only the types of operations and results with the real queue, so an
//! error in one is not repeated in the other.

pub mod batches;
mod breaker;
mod change;
pub mod compare;
mod give;
mod groups;
mod known;
mod lead;
mod line;
mod list;
mod park;
mod rerun;
pub mod seen;
mod send;
mod settle;
mod time;

use std::collections::VecDeque;

use crate::message::after::Counts;
use crate::message::errors::FailedAttempt;
use crate::message::score::Score;
use crate::message::state::{Reason, State, StoredState};
use crate::message::Choices;
use crate::op::{Done, Moment, Op, Redrive, Ticked};
use crate::queue::inspect::groups::GroupState;
use crate::schedule::{Limits, Overlap};
use crate::settings::{Rate, Settings};
use crate::stats::Totals;
use crate::{Error, Millis, Receipt, Seq};
use batches::Going;
use give::Tokened;
use rerun::Rerun;

/// A message with all its fields.
#[derive(Debug, Clone)]
pub struct Msg {
    pub seq: Seq,
    pub id: Vec<u8>,
    pub payload: Vec<u8>,
    /// Index of its group in [`Model::groups`].
    pub group: Option<usize>,
    pub priority: i8,
    pub choices: Choices,
    /// When it became ready or will become so.
    pub due: Millis,
    /// The due time that clients see.
    pub due_at: Millis,
    pub score_base: Millis,
    pub ttl_base: Millis,
    /// Whether its due time was given as a point of time.
    pub is_point: bool,
    /// Whether the sender gave its id.
    pub is_given: bool,
    pub sent_at: Millis,
    pub stored: StoredState,
    pub attempt: u32,
    pub failures: u32,
    pub timeouts: u32,
    /// The consumer of the last delivery.
    pub consumer: Option<Vec<u8>>,
    /// The failed attempts that ERRORS keeps.
    pub errors: Vec<FailedAttempt>,
    /// Whether it was snoozed after its last failure.
    pub snoozed: bool,
    pub note: Vec<u8>,
    /// When the first of the sends was done that replaced each other.
    pub first_sent_at: Millis,
    pub receipt: Receipt,
    pub batch: Receipt,
    pub lease_until: Millis,
    /// The end of the lease before its connection closed.
    pub old_end: Option<Millis>,
    pub ended_at: Millis,
    pub reason: Option<Reason>,
    /// The counts of the batch that it waited for, from the end of its wait.
    pub after_counts: Counts,
    /// The message that waits for the end of its run.
    pub rerun: Option<Rerun>,
    /// Since when it is parked. Its `due` is then the end of that.
    pub parked_at: Option<Millis>,
    /// The last signal, and the receipt of the delivery that was running then.
    pub signal: Option<(Vec<u8>, Receipt)>,
}

impl Msg {
    pub fn score(&self) -> Score {
        let by_default = Score::of_time(self.score_base);
        self.choices.score.unwrap_or(by_default)
    }

    pub fn in_batch(&self, name: &[u8]) -> bool {
        batches::batch_of(&self.choices) == Some(name)
    }

    pub fn has_failed(&self) -> bool {
        self.stored.is_pending() && self.failures > 0 && !self.snoozed
    }

    pub fn is_live(&self) -> bool {
        self.stored.is_pending() || self.stored == StoredState::Running
    }

    pub fn is_settled(&self) -> bool {
        matches!(self.stored, StoredState::Finished | StoredState::Cancelled)
    }
}

/// A group with its settings.
#[derive(Debug, Clone)]
pub struct Group {
    pub name: Vec<u8>,
    pub paused_until: Option<Millis>,
    /// The dead messages that hold the group.
    pub held_by: Vec<Seq>,
    pub weight: u64,
    pub concurrency: u64,
    pub rate: Option<Rate>,
    /// Times of the deliveries that its RATE still counts.
    pub given: Vec<Millis>,
}

/// A group as GROUPS lists it: name, state, numbers of pending and running
/// messages, head.
pub type Listed = (Vec<u8>, GroupState, (u64, u64), Option<Seq>);

/// An entry of the ready line: a group or, if `who` is `None`, the ungrouped
/// messages.
#[derive(Debug, Clone)]
pub struct Position {
    pub who: Option<usize>,
    /// The priority of its part of the ready line.
    pub priority: i8,
    /// When it joined the ready line.
    pub time: Millis,
    /// The number of the command, or of the step of a command, by which it joined;
    /// 0 if a due time came.
    pub ticket: u64,
    /// The message that it would have given at the end of that moment.
    pub head: Seq,
    /// How many messages it has delivered in its present turn.
    pub turn: u64,
}

/// A schedule with an EVERY rule.
#[derive(Debug, Clone)]
pub struct Schedule {
    pub name: Vec<u8>,
    pub period: Millis,
    pub start: Millis,
    /// Whether the client gave the start.
    pub is_given: bool,
    pub next_at: Millis,
    pub overlap: Overlap,
    pub limits: Limits,
    pub paused: bool,
    pub skipped: u64,
    pub last: Option<Seq>,
    pub payload: Vec<u8>,
    pub group: Option<Vec<u8>>,
    pub priority: i8,
    pub choices: Choices,
    pub if_group: bool,
}

/// The model of a queue.
#[derive(Debug, Clone)]
pub struct Model {
    pub settings: Settings,
    pub manual: bool,
    pub now: Millis,
    pub salt: u64,
    pub ticket: u64,
    pub last_seq: Seq,
    pub last_receipt: Receipt,
    /// All messages and records, in the order of sending.
    pub msgs: Vec<Msg>,
    pub groups: Vec<Group>,
    pub line: Vec<Position>,
    /// Times of the deliveries that RATE still counts.
    pub given: Vec<Millis>,
    pub paused_until: Option<Millis>,
    /// The breakers that were ever needed.
    pub breakers: Vec<breaker::Breaker>,
    /// Ids of finished and cancelled messages whose records are gone, and when the
    /// messages ended.
    pub ended_ids: Vec<(Vec<u8>, Millis)>,
    /// Deduplication ids, the ids of their first messages, and until when they count.
    pub dedup_ids: Vec<(Vec<u8>, Vec<u8>, Millis)>,
    /// The schedules in the order of their creation.
    pub schedules: Vec<Schedule>,
    /// Whether the schedules that the present operation passes are left out.
    pub skips_fires: bool,
    pub totals: Totals,
    pub ticked: Ticked,
    /// All receipts ever given out.
    pub receipts: Vec<Receipt>,
    /// Last call of each consumer that asked with a token.
    pub tokens: Vec<Tokened>,
    /// Finished and cancelled messages of each batch since it was opened.
    pub ended_of_batches: Vec<(Vec<u8>, Counts)>,
    /// Messages that are held no longer, during an operation.
    pub going: VecDeque<Going>,
    /// The batch of the message that an ACKSEND has finished, until the others are
    /// sent.
    pub kept_open: Option<Vec<u8>>,
    /// The messages that are sent before an operation or an event ends.
    pub reruns: Vec<Rerun>,
}

impl Model {
    pub fn new(settings: Settings, manual: Option<Millis>, salt: u64) -> Model {
        Model {
            settings,
            manual: manual.is_some(),
            now: manual.unwrap_or(0),
            salt,
            ticket: 0,
            last_seq: 0,
            last_receipt: 0,
            msgs: Vec::new(),
            groups: Vec::new(),
            line: Vec::new(),
            given: Vec::new(),
            paused_until: None,
            breakers: Vec::new(),
            ended_ids: Vec::new(),
            dedup_ids: Vec::new(),
            schedules: Vec::new(),
            skips_fires: false,
            totals: Totals::default(),
            ticked: Ticked::default(),
            receipts: Vec::new(),
            tokens: Vec::new(),
            ended_of_batches: Vec::new(),
            going: VecDeque::new(),
            kept_open: None,
            reruns: Vec::new(),
        }
    }

    pub fn apply(&mut self, op: &Op, moment: Moment) -> Result<Done, Error> {
        self.ticket += 1;
        self.ticked = Ticked::default();
        let done = match op {
            Op::Tick => Ok(Done::Ticked(Ticked::default())),
            Op::Alter(changes) => {
                let done = self.alter(changes);
                self.finish_manually();
                Ok(done)
            }
            Op::Send(send) => self.send(send, self.live()),
            Op::AckSend(ack_send) => self.ack_send(ack_send),
            Op::Duplicate => {
                self.totals.duplicates += 1;
                Ok(Done::Ok)
            }
            Op::Fetch(fetch) => Ok(Done::Fetched(self.fetch(fetch, moment.receipt))),
            Op::Ack { receipts, .. } => Ok(Done::Count(self.ack(receipts))),
            Op::AckEach { receipts, .. } => Ok(Done::Count(self.ack(receipts))),
            Op::Nack {
                receipts,
                kind,
                error,
                note,
                pause,
                ..
            } => self
                .nack(receipts, *kind, [error.as_deref(), note.as_deref()], *pause)
                .map(Done::Count),
            Op::Touch { ms, receipts, note } => {
                Ok(Done::Count(self.touch(*ms, receipts, note.as_deref())))
            }
            Op::EndLeases { receipts } => Ok(Done::Count(self.end_leases(receipts))),
            Op::Grace { ms, receipts } => Ok(Done::Count(self.grace(*ms, receipts))),
            Op::Advance { to, skip_fires } => self.advance_manually(*to, *skip_fires),
            Op::Cancel { ids } => {
                let cancel = |id: &std::borrow::Cow<[u8]>| self.cancel(id);
                Ok(Done::States(ids.iter().map(cancel).collect()))
            }
            Op::Reschedule { id, due } => Ok(Done::Flag(self.reschedule(id, *due))),
            Op::Update { id, payload } => self.update(id, payload).map(Done::Flag),
            Op::Signal { id, text } => Ok(Done::Flag(self.signal(id, text))),
            Op::Redrive(which) => {
                let count = self.redrive(which);
                if matches!(which, Redrive::Oldest(_)) {
                    self.finish_manually();
                }
                Ok(Done::Count(count))
            }
            Op::FindDo { act, seqs } => Ok(Done::Count(self.find_do(*act, seqs))),
            Op::Purge { state, group } => Ok(Done::Count(self.purge(*state, group.as_deref()))),
            Op::Remove(removal) => Ok(Done::Count(self.remove(removal))),
            Op::Pause { group, ms } => Ok(self.pause(group.as_deref(), *ms)),
            Op::Resume { group } => Ok(self.resume(group.as_deref())),
            Op::GroupSet { group, changes } => Ok(self.group_set(group, changes)),
            Op::Schedule(new) => self.schedule(new),
            Op::Unschedule { name } => Ok(Done::Flag(self.unschedule(name))),
            Op::PauseSchedule { name, paused } => {
                Ok(Done::Flag(self.pause_schedule(name, *paused)))
            }
            Op::AckCost { receipts, .. } => Ok(Done::Count(self.ack(receipts))),
            Op::Applied(applied) => Ok(self.note_applied(applied)),
            // These operations have tests of their own.
            Op::Limit { .. }
            | Op::CatchUp { .. }
            | Op::Moved(_)
            | Op::Children(_)
            | Op::Detach(_) => {
                unreachable!("not modelled")
            }
        };
        self.prune_counts();
        self.line_up(self.ticket);
        self.send_reruns(self.ticket);
        self.settle_batches();
        done
    }

    pub fn msg(&self, seq: Seq) -> &Msg {
        self.msgs.iter().find(|m| m.seq == seq).unwrap()
    }

    pub fn msg_mut(&mut self, seq: Seq) -> &mut Msg {
        self.msgs.iter_mut().find(|m| m.seq == seq).unwrap()
    }

    pub fn find(&self, id: &[u8]) -> Option<&Msg> {
        self.msgs.iter().find(|m| m.id == id)
    }

    pub fn running(&self, receipt: Receipt) -> Option<&Msg> {
        let is_it = |m: &&Msg| m.stored == StoredState::Running && m.receipt == receipt;
        self.msgs.iter().find(is_it)
    }

    pub fn group_number(&mut self, name: &[u8]) -> usize {
        if let Some(at) = self.groups.iter().position(|g| g.name == name) {
            return at;
        }
        self.groups.push(Group {
            name: name.to_vec(),
            paused_until: None,
            held_by: Vec::new(),
            weight: 1,
            concurrency: 0,
            rate: None,
            given: Vec::new(),
        });
        self.groups.len() - 1
    }

    pub fn state_of(&self, m: &Msg) -> State {
        match m.stored {
            StoredState::Delayed => State::Delayed,
            StoredState::Due if m.group.is_none() => State::Ready,
            StoredState::Due if self.head(m.group).is_some() => State::Ready,
            StoredState::Due => State::Blocked,
            StoredState::Retry => State::Retry,
            StoredState::Running => State::Running,
            StoredState::Finished => State::Finished,
            StoredState::Dead | StoredState::Leaving => State::Dead,
            StoredState::Cancelled => State::Cancelled,
            StoredState::Held => State::Held,
        }
    }

    /// A COPY: messages that were running are ready again.
    pub fn copy(&self) -> Model {
        let mut copy = self.clone();
        let running = self.msgs.iter();
        let running = running.filter(|m| m.stored == StoredState::Running);
        let mut running: Vec<_> = running.map(|m| (m.receipt, m.seq)).collect();
        running.sort_unstable();
        for (_, seq) in running {
            copy.come_back(seq, settle::Back::Uncounted);
        }
        copy.tokens.clear();
        copy.ticket += 1;
        copy.line_up(copy.ticket);
        copy.send_reruns(copy.ticket);
        copy.settle_batches();
        copy
    }

    /// The number of pending and running messages, and their payload bytes.
    pub fn live(&self) -> (u64, u64) {
        let live = self.msgs.iter().filter(|m| m.is_live());
        live.fold((0, 0), |(n, bytes), m| {
            (n + 1, bytes + m.payload.len() as u64)
        })
    }
}
