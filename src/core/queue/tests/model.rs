//! The queue as the command contract tells it, as slow and as obvious as can
//! be: one list of messages, searched and sorted anew for every question, and
//! a time that goes from event to event.
//!
//! It shares no structure with the real queue but the types of what goes in
//! and comes out, so an error in one is not an error in the other.

mod change;
mod give;
mod settle;
mod time;

use crate::core::id::generated;
use crate::core::message::{Choices, Place, Reason, State};
use crate::core::op::{Done, Moment, Op, Send, Sent, Ticked};
use crate::core::schedule::Overlap;
use crate::core::settings::{OnDead, OnRetry, Rate, Settings};
use crate::core::stats::Totals;
use crate::core::{Error, Millis, Receipt, Seq, NEVER};

/// A message, written out in full.
#[derive(Debug, Clone)]
pub struct Msg {
    pub seq: Seq,
    pub id: Vec<u8>,
    pub payload: Vec<u8>,
    /// Number of its group in [`Model::groups`].
    pub group: Option<usize>,
    pub priority: i8,
    pub choices: Choices,
    pub due: Millis,
    pub score_base: Millis,
    pub ttl_base: Millis,
    pub place: Place,
    pub attempt: u32,
    pub failures: u32,
    pub timeouts: u32,
    pub receipt: Receipt,
    pub batch: Receipt,
    pub lease_until: Millis,
    pub ended_at: Millis,
    pub reason: Option<Reason>,
}

impl Msg {
    pub fn score(&self) -> f64 {
        self.choices.score.unwrap_or(self.score_base as f64)
    }

    pub fn has_failed(&self) -> bool {
        self.place.is_pending() && self.failures > 0
    }

    pub fn is_live(&self) -> bool {
        self.place.is_pending() || self.place == Place::Running
    }

    pub fn is_settled(&self) -> bool {
        matches!(self.place, Place::Finished | Place::Cancelled)
    }
}

/// A group and what was said of it.
#[derive(Debug, Clone)]
pub struct Group {
    pub name: Vec<u8>,
    pub paused_until: Option<Millis>,
    /// The dead messages that hold it.
    pub held_by: Vec<Seq>,
    pub weight: u64,
    pub concurrency: u64,
    pub rate: Option<Rate>,
    /// Times of the deliveries that its RATE still counts.
    pub given: Vec<Millis>,
}

/// Someone in the line: a group, or (without number) the ungrouped messages.
#[derive(Debug, Clone)]
pub struct Stand {
    pub who: Option<usize>,
    /// In which line.
    pub priority: i8,
    /// When it joined it.
    pub time: Millis,
    /// By which command, or step of one; 0 if time did it.
    pub ticket: u64,
    /// What it would have given at the end of that moment.
    pub head: Seq,
    /// How many messages it has given in its turn.
    pub turn: u64,
}

/// A schedule of the kind EVERY.
#[derive(Debug, Clone)]
pub struct Schedule {
    pub name: Vec<u8>,
    pub period: Millis,
    pub next_at: Millis,
    pub overlap: Overlap,
    pub last: Option<Seq>,
    pub payload: Vec<u8>,
    pub group: Option<Vec<u8>>,
    pub priority: i8,
    pub choices: Choices,
}

/// The model.
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
    pub line: Vec<Stand>,
    /// Times of the deliveries that RATE still counts.
    pub given: Vec<Millis>,
    pub paused_until: Option<Millis>,
    /// Ids of messages that finished or were cancelled, and when: those of
    /// which no record is kept.
    pub ended_ids: Vec<(Vec<u8>, Millis)>,
    /// In the order of their making.
    pub schedules: Vec<Schedule>,
    pub totals: Totals,
    pub ticked: Ticked,
    /// All receipts ever given out.
    pub receipts: Vec<Receipt>,
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
            ended_ids: Vec::new(),
            schedules: Vec::new(),
            totals: Totals::default(),
            ticked: Ticked::default(),
            receipts: Vec::new(),
        }
    }

    pub fn apply(&mut self, op: &Op, moment: Moment) -> Result<Done, Error> {
        self.ticket += 1;
        self.ticked = Ticked::default();
        let done = match op {
            Op::Tick => Ok(Done::Ticked(Ticked::default())),
            Op::Alter(changes) => Ok(self.alter(changes)),
            Op::Send(send) => self.send(send),
            Op::Duplicate => {
                self.totals.duplicates += 1;
                Ok(Done::Ok)
            }
            Op::Fetch(fetch) => Ok(Done::Fetched(self.fetch(fetch, moment.receipt))),
            Op::Ack { receipts, .. } => Ok(Done::Count(self.ack(receipts))),
            Op::Nack { receipts, kind, .. } => Ok(Done::Count(self.nack(receipts, *kind))),
            Op::Touch { ms, receipts } => Ok(Done::Count(self.touch(*ms, receipts))),
            Op::EndLeases { receipts } => Ok(Done::Count(self.end_leases(receipts))),
            Op::Advance { to } => self.advance_manually(*to),
            Op::Cancel { ids } => {
                let cancel = |id: &std::borrow::Cow<[u8]>| self.cancel(id);
                Ok(Done::States(ids.iter().map(cancel).collect()))
            }
            Op::Reschedule { id, due } => Ok(Done::Flag(self.reschedule(id, *due))),
            Op::Update { id, payload } => self.update(id, payload).map(Done::Flag),
            Op::Redrive(which) => Ok(Done::Count(self.redrive(which))),
            Op::Purge { state, group } => Ok(Done::Count(self.purge(*state, group.as_deref()))),
            Op::Pause { group, ms } => Ok(self.pause(group.as_deref(), *ms)),
            Op::Resume { group } => Ok(self.resume(group.as_deref())),
            Op::GroupSet { group, changes } => Ok(self.group_set(group, changes)),
            Op::Schedule(new) => Ok(self.schedule(new)),
            Op::Unschedule { name } => Ok(Done::Flag(self.unschedule(name))),
            Op::CatchUp { .. } => unreachable!("not modelled"),
        };
        self.prune_counts();
        self.line_up(self.ticket);
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
        let is_it = |m: &&Msg| m.place == Place::Running && m.receipt == receipt;
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
        match m.place {
            Place::Delayed => State::Delayed,
            Place::Due if m.group.is_none() => State::Ready,
            Place::Due if self.head(m.group).is_some() => State::Ready,
            Place::Due => State::Blocked,
            Place::Retry => State::Retry,
            Place::Running => State::Running,
            Place::Finished => State::Finished,
            Place::Dead => State::Dead,
            Place::Cancelled => State::Cancelled,
        }
    }

    /// The messages of a state, in the order of LIST.
    pub fn list(&self, state: State) -> Vec<Seq> {
        let is_it = |m: &&Msg| self.state_of(m) == state;
        let mut listed: Vec<&Msg> = self.msgs.iter().filter(is_it).collect();
        listed.sort_by_key(|m| match m.place {
            Place::Delayed | Place::Due | Place::Retry => (m.due, m.seq),
            Place::Running => (m.lease_until, m.receipt),
            Place::Finished | Place::Dead | Place::Cancelled => (m.ended_at, m.seq),
        });
        listed.iter().map(|m| m.seq).collect()
    }

    /// A COPY: nothing runs in it. It is as of the time when anything changed
    /// last.
    pub fn copy(&self, at: Millis) -> Model {
        let mut copy = self.clone();
        copy.now = at;
        let running = self.msgs.iter().filter(|m| m.place == Place::Running);
        for m in running {
            copy.come_back(m.seq, settle::Back::Uncounted);
        }
        copy.ticket += 1;
        copy.line_up(copy.ticket);
        copy
    }

    /// Messages pending and running, and their payload bytes.
    pub fn live(&self) -> (u64, u64) {
        let live = self.msgs.iter().filter(|m| m.is_live());
        live.fold((0, 0), |(n, bytes), m| (n + 1, bytes + m.payload.len() as u64))
    }

    /// What `who` would give now, if it can give.
    pub fn head(&self, who: Option<usize>) -> Option<&Msg> {
        let mine = || self.msgs.iter().filter(move |m| m.group == who);
        let due = mine().filter(|m| m.place == Place::Due);
        let Some(number) = who else {
            return due.min_by_key(|m| (m.priority, m.due, m.seq));
        };
        let group = &self.groups[number];
        let concurrency = match group.concurrency {
            0 => self.settings.group_concurrency,
            own => own,
        };
        if group.paused_until.is_some()
            || self.is_held(group)
            || self.group_allowance(group) == 0
            || self.batches(number) >= concurrency
        {
            return None;
        }
        self.next_of_group(number)
    }

    /// What comes next of a group, if slots and pauses are left out.
    pub fn next_of_group(&self, number: usize) -> Option<&Msg> {
        let mine = || self.msgs.iter().filter(move |m| m.group == Some(number));
        let block = self.settings.on_retry == OnRetry::Block;
        if block && mine().any(|m| m.place == Place::Retry) {
            return None;
        }
        let before = |a: &&Msg, b: &&Msg| {
            let failed = |m: &Msg| block && m.has_failed();
            (failed(b).cmp(&failed(a)))
                .then(a.priority.cmp(&b.priority))
                .then(a.score().total_cmp(&b.score()))
                .then(a.seq.cmp(&b.seq))
        };
        mine().filter(|m| m.place == Place::Due).min_by(before)
    }

    pub fn is_held(&self, group: &Group) -> bool {
        self.settings.on_dead == OnDead::Block && !group.held_by.is_empty()
    }

    pub fn group_allowance(&self, group: &Group) -> u64 {
        match group.rate {
            None => u64::MAX,
            Some(rate) => free(rate, &group.given, self.now),
        }
    }

    /// Batches of a group that are leased.
    pub fn batches(&self, number: usize) -> u64 {
        let mine = self.msgs.iter().filter(|m| m.group == Some(number));
        let running = mine.filter(|m| m.place == Place::Running);
        let mut batches: Vec<Receipt> = running.map(|m| m.batch).collect();
        batches.sort_unstable();
        batches.dedup();
        batches.len() as u64
    }

    /// Takes those out of the line that can no longer give, or would now give
    /// something of another priority; puts those at its end that can.
    pub fn line_up(&mut self, ticket: u64) {
        let groups = (0..self.groups.len()).map(Some);
        for who in std::iter::once(None).chain(groups) {
            let head = self.head(who).map(|m| (m.priority, m.seq));
            let priority = head.map(|(priority, _)| priority);
            self.line
                .retain(|s| s.who != who || Some(s.priority) == priority);
            let Some((priority, head)) = head else {
                continue;
            };
            let now = self.now;
            match self.line.iter_mut().find(|s| s.who == who) {
                // What else happens in that moment may bring another head.
                Some(stand) if (stand.time, stand.ticket) == (now, ticket) => stand.head = head,
                Some(_) => {}
                None => self.line.push(Stand {
                    who,
                    priority,
                    time: now,
                    ticket,
                    head,
                    turn: 0,
                }),
            }
        }
    }

    fn send(&mut self, send: &Send) -> Result<Done, Error> {
        let mut replaced = None;
        if let Some(id) = send.id.as_deref() {
            let of_id = self.find(id);
            match of_id.filter(|m| !m.is_settled()) {
                Some(m) if send.replace && m.place.is_pending() => replaced = Some(m.seq),
                Some(_) => return Ok(self.taken()),
                None if self.is_remembered(id) => return Ok(self.taken()),
                None => replaced = of_id.map(|m| m.seq),
            }
        }
        let gone = self.msgs.iter().find(|m| Some(m.seq) == replaced);
        let gone = gone.filter(|m| m.is_live());
        let gone = gone.map_or((0, 0), |m| (1, m.payload.len() as u64));
        let (live, bytes) = self.live();
        let more: u64 = send.payloads.iter().map(|p| p.len() as u64).sum();
        let length = live - gone.0 + send.payloads.len() as u64;
        let limit = self.settings.max_len;
        if limit > 0 && length > limit {
            return Err(Error::FullLength { limit });
        }
        let limit = self.settings.max_bytes;
        if limit > 0 && bytes - gone.1 + more > limit {
            return Err(Error::FullBytes { limit });
        }
        if let Some(replaced) = replaced {
            self.msgs.retain(|m| m.seq != replaced);
            if gone.0 > 0 {
                // The group has lost it for a moment.
                self.line_up(self.ticket);
            }
        }
        let group = send.group.as_deref().map(|name| self.group_number(name));
        let due = send.due.from(self.now);
        let add = |payload: &&[u8]| {
            let seq = self.add(send.id.as_deref(), payload, due);
            let m = self.msg_mut(seq);
            m.group = group;
            m.priority = send.priority;
            m.choices = send.choices.clone();
            Sent::Added(seq)
        };
        Ok(Done::Sent(send.payloads.iter().map(add).collect()))
    }

    fn taken(&mut self) -> Done {
        self.totals.duplicates += 1;
        Done::Sent([Sent::Taken].into_iter().collect())
    }

    /// Whether DEDUP keeps an id taken.
    fn is_remembered(&self, id: &[u8]) -> bool {
        let dedup = self.settings.dedup;
        let counts = |of: &[u8], at: Millis| of == id && at + dedup > self.now;
        let mut records = self.msgs.iter().filter(|m| m.is_settled());
        records.any(|m| counts(&m.id, m.ended_at))
            || self.ended_ids.iter().any(|(id, at)| counts(id, *at))
    }

    /// Removes a record; DEDUP goes on counting.
    fn drop_record(&mut self, seq: Seq) {
        let m = self.msg(seq);
        if m.is_settled() && self.settings.dedup > 0 {
            self.ended_ids.push((m.id.clone(), m.ended_at));
        }
        self.msgs.retain(|m| m.seq != seq);
    }

    /// Puts a message in; says nothing yet of group and options.
    fn add(&mut self, id: Option<&[u8]>, payload: &[u8], due: Millis) -> Seq {
        self.last_seq += 1;
        self.totals.sent += 1;
        let seq = self.last_seq;
        let made = generated(seq, self.now, self.salt);
        self.msgs.push(Msg {
            seq,
            id: id.unwrap_or(&made).to_vec(),
            payload: payload.to_vec(),
            group: None,
            priority: 0,
            choices: Choices::default(),
            due,
            score_base: due,
            ttl_base: due,
            place: if due > self.now {
                Place::Delayed
            } else {
                Place::Due
            },
            attempt: 0,
            failures: 0,
            timeouts: 0,
            receipt: 0,
            batch: 0,
            lease_until: NEVER,
            ended_at: NEVER,
            reason: None,
        });
        seq
    }
}

/// How many deliveries a RATE still allows.
pub fn free(rate: Rate, given: &[Millis], now: Millis) -> u64 {
    let counted = given.iter().filter(|at| **at + rate.per > now).count();
    rate.count.saturating_sub(counted as u64)
}
