//! One queue on several servers, from its creation on.

use std::collections::VecDeque;

use crate::acts::{Acts, Manner};
use crate::disk::{hear, Disk};
use crate::mutant::{is_sound, try_record, try_snapshot, Fate};
use crate::story::{Tally, Told};
use crate::witness::{Before, Witness};
use crate::{difference, saved};
use dq_queue::codec::log_entry::{Creation, LogEntry};
use dq_queue::codec::verbatim;
use dq_queue::op::{Send, Sent};
use dq_queue::queue::rebuild::validate;
use dq_queue::settings::{Clock, Settings};
use dq_queue::{Done, Millis, Moment, Op, Queue, Receipt};

/// When a world begins, in Unix ms.
const START: Millis = 1_700_000_000_000;
/// So many of the last operations are told where one fails.
const TOLD: usize = 24;
/// The log is begun anew when it has so many records.
const MOST_RECORDS: usize = 2000;
/// So many slices one after the other at most.
const MOST_SLICES: u64 = 500;
/// A replica is compared after about as many steps as there are messages, and
/// every so many comparisons look into every index.
const VALIDATED: u64 = 8;

/// A queue, its copies, its log and its clients.
pub struct World {
    rng: fastrand::Rng,
    manner: Manner,
    us: u64,
    /// No receipt below this is given out by the server that is primary.
    receipt: Receipt,
    /// Since when the primary is one.
    acting_since: Millis,
    /// How many primaries there have been.
    term: u64,
    primary: Queue,
    /// Has heard of everything.
    replica: Queue,
    /// Has not heard of the last records yet.
    laggard: Queue,
    /// How many records it has heard of, and how many it may lack.
    heard: usize,
    lag: usize,
    disk: Disk,
    witness: Witness,
    compare_in: u64,
    /// Whether everything is looked into after each step.
    closely: bool,
    told: VecDeque<Told>,
    /// What has been done so far.
    pub tally: Tally,
}

impl World {
    /// The world of a seed. `closely`: everything is looked into after each
    /// step, which changes nothing of what is done.
    pub fn new(seed: u64, closely: bool) -> World {
        let mut rng = fastrand::Rng::with_seed(seed);
        let manner = Manner::random(&mut rng);
        let witness = Witness::default();
        let mut acts = Acts {
            rng: &mut rng,
            manner: &manner,
            witness: &witness,
            now: START,
            live: 0,
        };
        let settings = Settings {
            lease: 40,
            ..Settings::default()
        };
        let creation = Creation {
            settings: settings.with(&acts.changes()),
            clock: match acts.rng.u8(0..6) {
                0 => Clock::Manual(START),
                _ => Clock::Server,
            },
            salt: acts.rng.u64(..),
        };
        let mut world = World {
            us: START * 1000,
            receipt: START * 1000,
            acting_since: START,
            term: 1,
            primary: creation.queue(),
            replica: creation.queue(),
            laggard: creation.queue(),
            heard: 0,
            lag: 0,
            disk: Disk::new(&creation.queue(), false),
            witness,
            compare_in: 0,
            closely,
            told: VecDeque::new(),
            tally: Tally::default(),
            rng,
            manner,
        };
        let moment = world.moment();
        world.primary.made_at(moment);
        world
            .record(&LogEntry::of(moment, 0, Some(creation), &Op::Tick), false)
            .ok();
        world
    }

    /// The last operations, oldest first.
    pub fn story(&self) -> String {
        let lines = self.told.iter().map(|told| format!("  {told}\n"));
        lines.collect()
    }

    /// One operation or slice of time; now and then something worse before it.
    pub fn step(&mut self) -> Result<(), String> {
        self.tally.steps += 1;
        self.us += match self.rng.u32(0..1000) {
            0..500 => 1,
            500..900 => self.rng.u64(1..4_000),
            900..998 => self.rng.u64(1_000..60_000),
            // Longer than a consumer is remembered, but not where a schedule would
            // send hundreds of thousands of messages meanwhile.
            998 if self.primary.schedules().len() == 0 => self.rng.u64(1_000..4_000_000_000),
            _ => self.rng.u64(1_000..2_000_000),
        };
        match self.rng.u32(0..2048) {
            0 => self.crash()?,
            1 => self.promote()?,
            2 => self.begin_log(),
            3 => self.copy()?,
            4..24 => self.break_snapshot()?,
            24..88 => self.break_record()?,
            _ => {}
        }
        match self.rng.u8(0..8) {
            0 => self.slice()?,
            _ => self.operation()?,
        }
        if self.rng.u8(0..64) == 0 {
            self.work_off()?;
        }
        if self.rng.u8(0..4) == 0 {
            self.primary.sweep(self.rng.usize(0..4));
        }
        if self.disk.records() > MOST_RECORDS {
            self.begin_log();
        }
        if self.closely {
            self.is_same()?;
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

    /// Compares all there is once more.
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

    fn tell(&mut self, told: Told) {
        if self.told.len() == TOLD {
            self.told.pop_front();
        }
        self.told.push_back(told);
    }

    fn event(&mut self, what: &'static str) {
        self.tell(Told::Event(self.us, what));
    }

    /// What a client asks for, as a command does it.
    fn operation(&mut self) -> Result<(), String> {
        let moment = self.moment();
        let now = self.primary.now(moment);
        let mut acts = Acts {
            rng: &mut self.rng,
            manner: &self.manner,
            witness: &self.witness,
            now,
            live: self.primary.live(),
        };
        let op = acts.any();
        let most = *[0, 1, 3, 16, 16, 512, 512, 512]
            .get(self.rng.usize(0..8))
            .unwrap_or(&512);
        self.perform(moment, op, most)
    }

    /// What the timer does: a slice of time, or the decision about fires that
    /// were missed.
    fn slice(&mut self) -> Result<(), String> {
        let moment = self.moment();
        let since = self.acting_since;
        match self.primary.has_missed(since) {
            true => self.perform(moment, Op::CatchUp { since }, 0),
            false => {
                let most = 64 * self.rng.u64(0..6);
                self.perform(moment, Op::Tick, most)
            }
        }
    }

    /// What the timer does when no command comes: one slice after the other.
    fn work_off(&mut self) -> Result<(), String> {
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
        before.look(&self.primary, &op, now);
        let rng = &mut self.rng;
        let renewing = self.primary.renewing(&op, self.term, || rng.u64(..));
        let is_renewing = renewing.is_some();
        let op = renewing.unwrap_or(op);
        let of_command = match steps {
            0 => verbatim::moment(&self.primary, &op, moment, self.receipt - 1),
            _ => None,
        };
        let done = self.primary.apply(&op, of_command.unwrap_or(moment)).ok();
        if is_renewing && done.is_some() {
            self.primary.noted_term = self.term;
        }
        let as_command = of_command.is_some() && done.is_some();
        let told = match &done {
            None => &Op::Tick,
            Some(Done::Sent(sent)) if sent.first() == Some(&Sent::Taken) && !as_command => {
                &Op::Duplicate
            }
            Some(_) => &op,
        };
        let now = self.primary.now(moment);
        let caught_up = !self.primary.has_work(now);
        let judged = self
            .witness
            .judge(&self.primary, &before, &op, done.as_ref(), now, caught_up);
        let recorded = match self.primary.take_effects().changed {
            true => self.record(&LogEntry::of(moment, steps, None, told), as_command),
            false => Ok(()),
        };
        self.tell(Told::Op(moment.us, steps, Box::new(op)));
        judged.and(recorded)
    }

    /// Writes the record of an operation, or its command, and lets the replicas hear
    /// of it.
    fn record(&mut self, record: &LogEntry<'_, '_>, as_command: bool) -> Result<(), String> {
        self.tally.records += 1;
        self.tally.commands += u64::from(as_command);
        self.disk.append(record, as_command);
        self.receipt = self.receipt.max(self.primary.last_receipt() + 1);
        hear(&mut self.replica, self.disk.entry(self.disk.records() - 1))?;
        while self.heard + self.lag < self.disk.records() {
            hear(&mut self.laggard, self.disk.entry(self.heard))?;
            self.heard += 1;
        }
        Ok(())
    }

    fn compare(&mut self) -> Result<(), String> {
        self.tally.compared += 1;
        let size = self.is_same()?;
        self.compare_in = self.rng.u64(0..8 + size / 64);
        match self.tally.compared % VALIDATED {
            0 => is_sound(&self.primary).and_then(|()| validate(&self.replica)),
            _ => Ok(()),
        }
    }

    /// Whether the replica is the same queue; how large its snapshot is.
    fn is_same(&self) -> Result<u64, String> {
        let bytes = saved(&self.primary);
        match difference(&bytes, &saved(&self.replica)) {
            None => Ok(bytes.len() as u64),
            Some(where_to) => Err(format!("the replica differs {where_to}")),
        }
    }

    /// A new snapshot, with which the log begins.
    fn begin_log(&mut self) {
        self.event("the log is rewritten");
        self.disk = Disk::new(&self.primary, self.rng.bool());
        self.laggard = self.replica.clone();
        self.heard = 0;
        self.lag = self.rng.usize(0..6);
    }

    /// The primary dies, and its last records with it, one of them in half. What
    /// it finds when it starts is what the replica has that had heard so much.
    fn crash(&mut self) -> Result<(), String> {
        self.event("crash");
        self.tally.crashes += 1;
        if self.rng.u8(0..4) == 0 {
            while self.heard < self.disk.records() {
                hear(&mut self.laggard, self.disk.entry(self.heard))?;
                self.heard += 1;
            }
        }
        self.disk.tear(self.heard, self.rng.usize(0..64));
        let found = self.disk.recover()?;
        if let Some(where_to) = difference(&saved(&found), &saved(&self.laggard)) {
            return Err(format!("what was recovered differs {where_to}"));
        }
        validate(&found)?;
        self.primary = found;
        self.take_over();
        Ok(())
    }

    /// The primary is gone, and a replica takes its place.
    fn promote(&mut self) -> Result<(), String> {
        self.tally.promotions += 1;
        let promoted = match self.rng.bool() {
            true => {
                self.event("the replica is promoted");
                &self.replica
            }
            false => {
                self.event("the replica that lags behind is promoted");
                &self.laggard
            }
        };
        self.primary = promoted.clone();
        validate(&self.primary)?;
        self.take_over();
        Ok(())
    }

    /// A new primary: it knows what it has heard of, and all others begin with
    /// a snapshot of it.
    fn take_over(&mut self) {
        self.us += self.rng.u64(1_000..3_000_000);
        self.term += 1;
        self.acting_since = self.us / 1000;
        self.receipt = self.primary.last_receipt() + 1;
        self.witness.forget();
        self.primary.take_effects();
        self.disk = Disk::new(&self.primary, self.rng.bool());
        // It has just been written by this very program.
        if let Ok(synced) = self.disk.recover() {
            self.laggard = synced.clone();
            self.replica = synced;
        }
        self.heard = 0;
        self.lag = self.rng.usize(0..6);
    }

    /// A copy is sound, and nothing runs in it.
    fn copy(&mut self) -> Result<(), String> {
        self.event("copy");
        let copy = self.primary.copy();
        if copy.count(dq_queue::message::state::State::Running) > 0 {
            return Err("something runs in a copy".into());
        }
        is_sound(&copy)?;
        self.send_into(copy)?;
        let disk = Disk::new(&self.primary, true);
        self.send_into(disk.recover()?)
    }

    /// A message that is sent to a queue which has come to another place gets an id
    /// that no queue makes anywhere else.
    fn send_into(&mut self, mut elsewhere: Queue) -> Result<(), String> {
        let moment = self.moment();
        let rng = &mut self.rng;
        let op = Op::Send(Send::plain(b"elsewhere"));
        let renewing = elsewhere.renewing(&op, self.term, || rng.u64(..));
        let op = renewing.unwrap_or(op);
        let done = elsewhere.apply(&op, moment).ok();
        self.witness.judge_ids(&elsewhere, &op, done.as_ref())
    }

    fn break_snapshot(&mut self) -> Result<(), String> {
        let fate = try_snapshot(&mut self.rng, saved(&self.replica), self.us)?;
        self.count(fate);
        Ok(())
    }

    fn break_record(&mut self) -> Result<(), String> {
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
