//! A cluster: one queue on a primary and two replicas, from its creation on.

use std::collections::VecDeque;

use crate::corruptor::{is_sound, try_record, try_snapshot, Fate};
use crate::disk::{apply_entry, Disk};
use crate::ops::{Ops, Profile};
use crate::oracle::{Before, Oracle};
use crate::trace::{Entry, Tally};
use crate::{difference, saved};
use dq_queue::codec::log_entry::{Creation, LogEntry};
use dq_queue::codec::verbatim;
use dq_queue::glob::Glob;
use dq_queue::message::state::State;
use dq_queue::op::{FindAct, Send, Sent};
use dq_queue::queue::inspect::find::Search;
use dq_queue::queue::plan::{Plan, Step};
use dq_queue::queue::rebuild::validate;
use dq_queue::settings::{Clock, Settings};
use dq_queue::{Done, Millis, Moment, Op, Queue, Receipt};

/// When a cluster begins, in Unix milliseconds.
const START: Millis = 1_700_000_000_000;
/// Number of operations and events in the trace of a failure.
const TRACED: usize = 24;
/// Number of entries above which the log is rewritten.
const MOST_RECORDS: usize = 2000;
/// Maximum slices of time in a row.
const MOST_SLICES: u64 = 500;
/// Number of comparisons of primary and replica of which one checks every index, too.
const VALIDATED: u64 = 8;

/// A queue, its copies, its log and its clients.
pub struct Cluster {
    rng: fastrand::Rng,
    profile: Profile,
    /// The time of all servers, in Unix microseconds.
    us: u64,
    /// The primary gives out no receipt below this.
    receipt: Receipt,
    /// Since when the primary is one, in Unix milliseconds.
    acting_since: Millis,
    /// Number of primaries so far.
    term: u64,
    primary: Queue,
    /// Has applied every entry of the log.
    replica: Queue,
    /// Lacks the last entries of the log.
    lagging: Queue,
    /// Number of entries that `lagging` has applied.
    applied: usize,
    /// Number of entries that `lagging` may lack.
    lag: usize,
    disk: Disk,
    oracle: Oracle,
    /// The bulk operation that the primary does in slices.
    bulk: Option<Plan>,
    /// Number of steps until primary and replica are compared.
    compare_in: u64,
    /// Whether every index is checked after each step.
    closely: bool,
    trace: VecDeque<Entry>,
    /// Counters of what has been done so far.
    pub tally: Tally,
}

impl Cluster {
    /// Creates the cluster of a seed. `closely` says that every index is checked
    /// after each step, which does not change what is done.
    pub fn new(seed: u64, closely: bool) -> Cluster {
        let mut rng = fastrand::Rng::with_seed(seed);
        let profile = Profile::random(&mut rng);
        let oracle = Oracle::default();
        let mut ops = Ops {
            rng: &mut rng,
            profile: &profile,
            oracle: &oracle,
            now: START,
            live: 0,
        };
        let settings = Settings {
            lease: 40,
            ..Settings::default()
        };
        let creation = Creation {
            settings: settings.with(&ops.changes()),
            clock: match ops.rng.u8(0..6) {
                0 => Clock::Manual(START),
                _ => Clock::Server,
            },
            salt: ops.rng.u64(..),
        };
        let mut cluster = Cluster {
            us: START * 1000,
            receipt: START * 1000,
            acting_since: START,
            term: 1,
            primary: creation.queue(),
            replica: creation.queue(),
            lagging: creation.queue(),
            applied: 0,
            lag: 0,
            disk: Disk::new(&creation.queue(), false),
            oracle,
            bulk: None,
            compare_in: 0,
            closely,
            trace: VecDeque::new(),
            tally: Tally::default(),
            rng,
            profile,
        };
        let moment = cluster.moment();
        cluster.primary.made_at(moment);
        cluster
            .record(&LogEntry::of(moment, 0, Some(creation), &Op::Tick), false)
            .ok();
        cluster
    }

    /// Returns the last operations and events, one a line, the oldest first.
    pub fn trace(&self) -> String {
        let lines = self.trace.iter().map(|entry| format!("  {entry}\n"));
        lines.collect()
    }

    /// Does one operation or one slice of time, after a fault in some cases.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn step(&mut self) -> Result<(), String> {
        self.tally.steps += 1;
        self.us += match self.rng.u32(0..1000) {
            0..500 => 1,
            500..900 => self.rng.u64(1..4_000),
            900..998 => self.rng.u64(1_000..60_000),
            // This may be longer than a consumer is remembered. With a schedule it would
            // send hundreds of thousands of messages in that time.
            998 if self.primary.schedules().len() == 0 => self.rng.u64(1_000..4_000_000_000),
            _ => self.rng.u64(1_000..2_000_000),
        };
        match self.rng.u32(0..2048) {
            0 => self.crash()?,
            1 => self.promote()?,
            2 => self.rewrite_log(),
            3 => self.copy()?,
            4..24 => self.corrupt_snapshot()?,
            24..88 => self.corrupt_entry()?,
            _ => {}
        }
        match self.rng.u8(0..8) {
            0 => self.slice()?,
            _ => self.operation()?,
        }
        if self.rng.u8(0..64) == 0 {
            self.catch_up()?;
        }
        if self.rng.u8(0..4) == 0 {
            self.primary.free_garbage(self.rng.usize(0..4));
        }
        if self.disk.records() > MOST_RECORDS {
            self.rewrite_log();
        }
        if self.closely {
            self.compare_snapshots()?;
            validate(&self.primary)?;
            validate(&self.replica)?;
        }
        match self.compare_in {
            0 => self.compare(),
            _ => {
                self.compare_in -= 1;
                Ok(())
            }
        }
    }

    /// Compares all copies of the queue once more.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn end(&mut self) -> Result<(), String> {
        self.compare()?;
        self.crash()?;
        is_sound(&self.primary)
    }

    fn moment(&self) -> Moment {
        Moment {
            us: self.us,
            receipt: self.receipt.max(self.us),
        }
    }

    fn add_to_trace(&mut self, entry: Entry) {
        if self.trace.len() == TRACED {
            self.trace.pop_front();
        }
        self.trace.push_back(entry);
    }

    fn event(&mut self, what: &'static str) {
        self.add_to_trace(Entry::Event { us: self.us, what });
    }

    /// Does an operation that a client asks for, as a command does it.
    fn operation(&mut self) -> Result<(), String> {
        let moment = self.moment();
        let now = self.primary.now(moment);
        let mut ops = Ops {
            rng: &mut self.rng,
            profile: &self.profile,
            oracle: &self.oracle,
            now,
            live: self.primary.live(),
        };
        let op = ops.any();
        let most = *[0, 1, 3, 16, 16, 512, 512, 512]
            .get(self.rng.usize(0..8))
            .unwrap_or(&512);
        // A client that may not wait has all done at once.
        let bulk = self.primary.plan(&op, now).filter(|_| self.rng.bool());
        if bulk.is_some() {
            self.bulk = bulk;
            return self.perform(moment, Op::Tick, most);
        }
        self.perform(moment, op, most)
    }

    /// Does what the timer does: one slice of time, one slice of a bulk operation, or
    /// the decision about schedules that missed a time while no server ran.
    fn slice(&mut self) -> Result<(), String> {
        let moment = self.moment();
        let since = self.acting_since;
        if self.primary.has_missed(since) {
            return self.perform(moment, Op::CatchUp { since }, 0);
        }
        let most = 64 * self.rng.u64(0..6);
        self.perform(moment, Op::Tick, most)?;
        self.bulk_slice()
    }

    /// The next slice of the bulk operation, if there is one.
    fn bulk_slice(&mut self) -> Result<(), String> {
        let moment = self.moment();
        let now = self.primary.now(moment);
        let most = self.rng.u64(1..8);
        let Some(plan) = &mut self.bulk else {
            return Ok(());
        };
        match plan.next(&self.primary, most, now) {
            Step::Do(op) => self.perform(moment, *op, 0),
            Step::Look => Ok(()),
            Step::Done => {
                self.bulk = None;
                Ok(())
            }
        }
    }

    /// Does one slice of time after the other, as the timer does when no command
    /// comes.
    fn catch_up(&mut self) -> Result<(), String> {
        for _ in 0..MOST_SLICES {
            if !self.primary.has_work(self.primary.now(self.moment())) {
                break;
            }
            self.us += 1;
            self.slice()?;
        }
        Ok(())
    }

    fn perform(&mut self, moment: Moment, op: Op<'static>, most: u64) -> Result<(), String> {
        let now = self.primary.now(moment);
        let mut before = Before::of(&self.primary);
        let mut steps = 0;
        if self.primary.has_work(now) && !self.primary.has_missed(self.acting_since) {
            steps = self.primary.advance(now, most).steps;
        }
        let op = match op {
            Op::FindDo { act, .. } => self.find(act, now),
            op => op,
        };
        before.inspect(&self.primary, &op, now);
        let rng = &mut self.rng;
        let renewing = self.primary.renewing(&op, self.term, || rng.u64(..));
        let is_renewing = renewing.is_some();
        let op = renewing.unwrap_or(op);
        let of_command = match steps {
            0 => verbatim::moment(&self.primary, &op, moment, self.receipt - 1),
            _ => None,
        };
        let can = match &op {
            Op::AckSend(ack_send) => self.primary.can_ack_send(ack_send, moment).is_ok(),
            _ => true,
        };
        let op = if can { op } else { Op::Tick };
        let done = self.primary.apply(&op, of_command.unwrap_or(moment)).ok();
        let has_renewed = match &done {
            None | Some(Done::AckSent(None)) => false,
            Some(Done::Sent(sent)) => sent.first() != Some(&Sent::NoGroup),
            Some(_) => true,
        };
        if is_renewing && can && has_renewed {
            self.primary.noted_term = self.term;
        }
        let as_command = of_command.is_some() && done.is_some();
        let logged = match &done {
            None => &Op::Tick,
            Some(Done::Sent(sent)) if sent.first() == Some(&Sent::Taken) && !as_command => {
                &Op::Duplicate
            }
            Some(_) => &op,
        };
        let now = self.primary.now(moment);
        let caught_up = !self.primary.has_work(now);
        let checked = self
            .oracle
            .check(&self.primary, &before, &op, done.as_ref(), now, caught_up);
        let recorded = match self.primary.take_effects().changed {
            true => self.record(&LogEntry::of(moment, steps, None, logged), as_command),
            false => Ok(()),
        };
        self.add_to_trace(Entry::Op {
            us: moment.us,
            steps,
            op: Box::new(op),
        });
        checked.and(recorded)
    }

    /// Searches a state, and does something with the messages that are found.
    fn find(&mut self, act: FindAct, now: Millis) -> Op<'static> {
        let state = match act {
            FindAct::Redrive => State::Dead,
            _ => State::ALL[self.rng.usize(0..State::ALL.len())],
        };
        let since = self.rng.u64(0..2 * self.profile.ms);
        let search = Search {
            state,
            id: None,
            label: None,
            group: None,
            batch: None,
            header: None,
            error: None,
            payload: (self.rng.u8(0..3) == 0).then(|| Glob::new(b"*e*")),
            since: (self.rng.u8(0..4) == 0).then(|| now.saturating_sub(since)),
            until: None,
            reverse: self.rng.bool(),
            cursor: None,
            count: self.rng.usize(1..2 + self.profile.batch),
        };
        let (_, seqs) = self.primary.search(&search, now);
        Op::FindDo { act, seqs }
    }

    /// Appends an entry to the log and lets the replicas apply what they are to
    /// have of it.
    fn record(&mut self, record: &LogEntry<'_, '_>, as_command: bool) -> Result<(), String> {
        self.tally.records += 1;
        self.tally.commands += u64::from(as_command);
        self.disk.append(record, as_command);
        self.receipt = self.receipt.max(self.primary.last_receipt() + 1);
        apply_entry(&mut self.replica, self.disk.entry(self.disk.records() - 1))?;
        while self.applied + self.lag < self.disk.records() {
            apply_entry(&mut self.lagging, self.disk.entry(self.applied))?;
            self.applied += 1;
        }
        Ok(())
    }

    /// Compares primary and replica, and draws when that is done again: after at
    /// most 8 steps and one for each 64 bytes of the snapshot, so that a large
    /// queue is compared less often.
    fn compare(&mut self) -> Result<(), String> {
        self.tally.compared += 1;
        let size = self.compare_snapshots()?;
        self.compare_in = self.rng.u64(0..8 + size / 64);
        match self.tally.compared % VALIDATED {
            0 => is_sound(&self.primary).and_then(|()| validate(&self.replica)),
            _ => Ok(()),
        }
    }

    /// Compares primary and replica. Returns the size of their snapshot in bytes.
    fn compare_snapshots(&self) -> Result<u64, String> {
        let bytes = saved(&self.primary);
        match difference(&bytes, &saved(&self.replica)) {
            None => Ok(bytes.len() as u64),
            Some(place) => Err(format!("the replica differs {place}")),
        }
    }

    /// Rewrites the log: it begins with a new snapshot.
    fn rewrite_log(&mut self) {
        self.event("the log is rewritten");
        self.disk = Disk::new(&self.primary, self.rng.bool());
        self.lagging = self.replica.clone();
        self.applied = 0;
        self.lag = self.rng.usize(0..6);
    }

    /// The primary dies and loses the last entries of its log, one of them in part.
    /// What it loads when it starts must be what the replica has that applied as
    /// many entries.
    fn crash(&mut self) -> Result<(), String> {
        self.event("crash");
        self.tally.crashes += 1;
        if self.rng.u8(0..4) == 0 {
            while self.applied < self.disk.records() {
                apply_entry(&mut self.lagging, self.disk.entry(self.applied))?;
                self.applied += 1;
            }
        }
        self.disk.tear(self.applied, self.rng.usize(0..64));
        let found = self.disk.recover()?;
        if let Some(place) = difference(&saved(&found), &saved(&self.lagging)) {
            return Err(format!("the queue that was recovered differs {place}"));
        }
        validate(&found)?;
        self.primary = found;
        self.take_over();
        Ok(())
    }

    /// Replaces the primary by a replica.
    fn promote(&mut self) -> Result<(), String> {
        self.tally.promotions += 1;
        let promoted = match self.rng.bool() {
            true => {
                self.event("the replica is promoted");
                &self.replica
            }
            false => {
                self.event("the replica that lags behind is promoted");
                &self.lagging
            }
        };
        self.primary = promoted.clone();
        validate(&self.primary)?;
        self.take_over();
        Ok(())
    }

    /// Begins the term of a new primary. It has what it applied so far, and the
    /// replicas begin with its snapshot.
    fn take_over(&mut self) {
        self.us += self.rng.u64(1_000..3_000_000);
        self.term += 1;
        self.acting_since = self.us / 1000;
        self.receipt = self.primary.last_receipt() + 1;
        self.oracle.forget();
        self.bulk = None;
        self.primary.take_effects();
        self.disk = Disk::new(&self.primary, self.rng.bool());
        // The log was written just now, so it can be read.
        if let Ok(synced) = self.disk.recover() {
            self.lagging = synced.clone();
            self.replica = synced;
        }
        self.applied = 0;
        self.lag = self.rng.usize(0..6);
    }

    /// Checks that a copy of the queue is sound and that no message in it is
    /// running.
    fn copy(&mut self) -> Result<(), String> {
        self.event("copy");
        let copy = self.primary.copy();
        if copy.count(dq_queue::message::state::State::Running) > 0 {
            return Err("a message is running in a copy".into());
        }
        is_sound(&copy)?;
        self.send_into(copy)?;
        let disk = Disk::new(&self.primary, true);
        self.send_into(disk.recover()?)
    }

    /// Sends a message to a copy of the queue, and checks that its id is one that
    /// no other copy has made.
    fn send_into(&mut self, mut elsewhere: Queue) -> Result<(), String> {
        let moment = self.moment();
        let rng = &mut self.rng;
        let op = Op::Send(Send::plain(b"elsewhere"));
        let renewing = elsewhere.renewing(&op, self.term, || rng.u64(..));
        let op = renewing.unwrap_or(op);
        let done = elsewhere.apply(&op, moment).ok();
        self.oracle.check_ids(&elsewhere, &op, done.as_ref())
    }

    fn corrupt_snapshot(&mut self) -> Result<(), String> {
        let fate = try_snapshot(&mut self.rng, saved(&self.replica), self.us)?;
        self.count(fate);
        Ok(())
    }

    fn corrupt_entry(&mut self) -> Result<(), String> {
        let Some(last) = self.disk.records().checked_sub(1) else {
            return Ok(());
        };
        let number = self.rng.usize(0..=last);
        let bytes = self.disk.record(number);
        let fate = try_record(&mut self.rng, bytes, &self.replica, self.us)?;
        self.count(fate);
        Ok(())
    }

    fn count(&mut self, fate: Fate) {
        match fate {
            Fate::Refused => self.tally.refused += 1,
            Fate::Taken => self.tally.taken += 1,
        }
    }
}
