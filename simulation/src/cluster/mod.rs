//! A cluster: one queue on a primary and two replicas, from its creation on.

mod begin;
mod effects;
mod faults;
mod perform;

use std::collections::VecDeque;

use crate::bugs::Bug;
use crate::corruptor::is_sound;
use crate::disk::{apply_entry, Disk, Logged};
use crate::ops::{Ops, Profile};
use crate::oracle::Oracle;
use crate::trace::{Entry, Tally};
use dq_queue::codec::log_entry::{Creation, LogEntry};
use dq_queue::effect::plain::PlainKeys;
use dq_queue::queue::bulk::{Plan, Step};
use dq_queue::queue::rebuild::validate;
use dq_queue::settings::{Clock, Settings};
use dq_queue::{Millis, Moment, Op, Queue, Receipt};

/// When a cluster begins, in Unix milliseconds.
const START: Millis = 1_700_000_000_000;
/// The key of the queue.
const KEYS: [&[u8]; 1] = [b"q"];
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
    /// The time of the present primary, in Unix microseconds.
    us: u64,
    /// The primary gives out only receipts from this number on.
    receipt: Receipt,
    /// The highest receipt that any primary has given out.
    issued: Receipt,
    /// Since when the primary has this role, in Unix milliseconds.
    acting_since: Millis,
    /// Number of primaries so far.
    term: u64,
    /// The term in which the primary drew the salt of the ids that it generates.
    salt_term: u64,
    primary: Queue,
    /// Has applied every entry of the log.
    replica: Queue,
    /// Lacks the last entries of the log.
    lagging: Queue,
    /// The plain keys of each of the three.
    primary_keys: PlainKeys,
    replica_keys: PlainKeys,
    lagging_keys: PlainKeys,
    /// Whether each acknowledgement counts itself in a plain key.
    counts: bool,
    /// Number of entries that `lagging` has applied.
    applied: usize,
    /// Number of entries that `lagging` may lack.
    lag: usize,
    disk: Disk,
    oracle: Oracle,
    /// Whether the primary has no memory left, so that no schedule may fire.
    is_full: bool,
    /// The bulk operation that the primary does in slices.
    bulk: Option<Plan>,
    /// Number of steps until primary and replica are compared.
    compare_in: u64,
    /// Whether every index is checked after each step.
    closely: bool,
    /// The bug of the primary, in a test of the simulation itself.
    bug: Option<Bug>,
    trace: VecDeque<Entry>,
    /// Counters of the operations so far.
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
            keys: &KEYS,
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
            issued: 0,
            acting_since: START,
            term: 1,
            salt_term: 0,
            primary: creation.queue(),
            replica: creation.queue(),
            lagging: creation.queue(),
            primary_keys: PlainKeys::default(),
            replica_keys: PlainKeys::default(),
            lagging_keys: PlainKeys::default(),
            counts: seed.is_multiple_of(5),
            applied: 0,
            lag: 0,
            disk: Disk::new(&creation.queue(), &PlainKeys::default(), false),
            oracle,
            is_full: false,
            bulk: None,
            compare_in: 0,
            closely,
            bug: None,
            trace: VecDeque::new(),
            tally: Tally::default(),
            rng,
            profile,
        };
        let moment = cluster.moment();
        cluster.primary.made_at(moment);
        cluster.oracle.begin(&cluster.primary, START);
        cluster
            .record(
                &LogEntry::of(moment, 0, Some(creation), &Op::Tick),
                &[],
                false,
            )
            .ok();
        cluster
    }

    /// Seeds a bug, which the simulation must find.
    pub fn with_bug(mut self, bug: Bug) -> Cluster {
        self.bug = Some(bug);
        self
    }

    /// Returns the last operations and events, one a line, the oldest first.
    pub fn trace(&self) -> String {
        let lines = self.trace.iter().map(|entry| format!("  {entry}\n"));
        lines.collect()
    }

    /// Does one operation or one slice of time, after a fault in some cases.
    ///
    /// # Errors
    /// A sentence about the error.
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
            88..104 => self.is_full = !self.is_full,
            104..168 => self.reload()?,
            168..170 => self.replay_log()?,
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
    /// A sentence about the error.
    pub fn end(&mut self) -> Result<(), String> {
        self.compare()?;
        self.crash()?;
        is_sound(&self.primary)
    }

    /// The present moment of the queue.
    fn moment(&self) -> Moment {
        self.primary.moment(self.server_moment())
    }

    /// The present moment of the primary.
    fn server_moment(&self) -> Moment {
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

    fn ops(&mut self, now: Millis) -> Ops<'_> {
        Ops {
            rng: &mut self.rng,
            profile: &self.profile,
            oracle: &self.oracle,
            now,
            live: self.primary.live(),
            keys: &KEYS,
        }
    }

    /// Does an operation that a client asks for, as a command does it.
    fn operation(&mut self) -> Result<(), String> {
        let moment = self.moment();
        let now = self.primary.now(moment);
        let mut op = self.ops(now).any();
        if self.counts {
            op = effects::with_one_receipt(op);
        }
        let most = *[0, 1, 3, 16, 16, 512, 512, 512]
            .get(self.rng.usize(0..8))
            .unwrap_or(&512);
        // A client that may not wait gets all work done at once.
        let bulk = self.primary.plan(&op, now).filter(|_| self.rng.bool());
        if bulk.is_some() {
            self.bulk = bulk;
            return self.perform(moment, Op::Tick, most);
        }
        self.perform(moment, op, most)
    }

    /// Does the work of the timer: one slice of time, one slice of a bulk operation, or
    /// the decision about schedules that missed a time while no server ran.
    fn slice(&mut self) -> Result<(), String> {
        let moment = self.moment();
        let since = self.acting_since;
        let most = 64 * self.rng.u64(0..6);
        let skip = self.is_full && self.primary.has_fire(self.primary.now(moment));
        if skip || self.primary.has_missed(since) {
            return self.perform(moment, Op::CatchUp { since, skip }, most);
        }
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

    /// Processes one slice of time after the other, as the timer does when no command
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

    /// Appends an entry to the log and lets the replicas apply their part of it.
    fn record(
        &mut self,
        record: &LogEntry<'_, '_>,
        effects: &[Logged],
        as_command: bool,
    ) -> Result<(), String> {
        self.tally.records += 1;
        self.tally.commands += u64::from(as_command);
        self.disk.append(record, effects, as_command);
        self.receipt = self.receipt.max(self.primary.last_receipt() + 1);
        self.issued = self.issued.max(self.primary.last_receipt());
        let last = self.disk.entry(self.disk.records() - 1);
        apply_entry(&mut self.replica, &mut self.replica_keys, last)?;
        while self.applied + self.lag < self.disk.records() {
            let next = self.disk.entry(self.applied);
            apply_entry(&mut self.lagging, &mut self.lagging_keys, next)?;
            self.applied += 1;
        }
        Ok(())
    }
}
