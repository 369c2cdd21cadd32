//! A few queues on one server that send each other dead letters, the ends of children, and what
//! follows from a job.
//!
//! They do all that a client can ask for, and may be reloaded, restored without their ties,
//! deleted, or come from a log or a replica at any moment. After each step every queue must equal
//! its replica and owe nothing to the others.

mod change;
mod faults;
mod keyspace;

use std::collections::{BTreeMap, VecDeque};

use crate::disk::Disk;
use crate::ops::{Ops, Profile};
use crate::oracle::Oracle;
use crate::trace::Entry;
use crate::{difference, saved};
use dq_queue::codec::log_entry::Creation;
use dq_queue::dead_letters::DeadTo;
use dq_queue::op::FindAct;
use dq_queue::queue::bulk::{Plan, Step};
use dq_queue::queue::rebuild::validate;
use dq_queue::settings::{Clock, Settings};
use dq_queue::{Done, Moment, Op, Queue};

use change::Begun;

/// When the server begins, in Unix ms.
const START: u64 = 1_700_000_000_000;
/// The keys of the queues.
const KEYS: [&[u8]; 3] = [b"a", b"b", b"c"];
/// Number of operations and events in the trace of a failure.
const TRACED: usize = 24;
/// Number of log entries of a queue above which its log is rewritten.
const MOST_RECORDS: usize = 1000;
/// Number of steps of which one checks every index, too.
const VALIDATED: u64 = 16;

/// A bug of the server, for a test of the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// The reports about children are not logged.
    LogsNoReports,
    /// That dead messages have gone is not logged.
    LogsNoMoves,
    /// The work that a queue owes after an operation is forgotten.
    ForgetsWhatIsOwed,
}

/// All bugs, each with a part of the sentence by which it must be found.
pub const BUGS: &[(Bug, &str)] = &[
    (Bug::LogsNoReports, "the replica of"),
    (Bug::LogsNoMoves, "the replica of"),
    (Bug::ForgetsWhatIsOwed, "still owes something"),
];

/// A queue with its replica and its log.
struct Place {
    queue: Queue,
    replica: Queue,
    disk: Disk,
    /// The bulk operation that the server does in slices.
    bulk: Option<Plan>,
}

/// A few queues on one server.
pub struct Neighbours {
    rng: fastrand::Rng,
    profile: Profile,
    /// The time of the server, in Unix microseconds.
    us: u64,
    /// The server gives out only receipts from this number on.
    receipt: u64,
    places: BTreeMap<&'static [u8], Place>,
    /// The receipts that were given out.
    oracle: Oracle,
    bug: Option<Bug>,
    /// The fault that was found within a change.
    failed: Option<String>,
    trace: VecDeque<Entry>,
    /// Operations and slices of time so far.
    pub steps: u64,
    /// The messages that the queues have sent each other so far.
    pub sent: u64,
}

impl Neighbours {
    /// The queues of a seed.
    pub fn new(seed: u64) -> Neighbours {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut profile = Profile::random(&mut rng);
        // Queues that are compared after each step have to be small.
        profile.batch = profile.batch.min(5);
        profile.size = profile.size.min(60);
        profile.ids = profile.ids.min(10);
        Neighbours {
            rng,
            profile,
            us: START * 1000,
            receipt: START * 1000,
            places: BTreeMap::new(),
            oracle: Oracle::default(),
            bug: None,
            failed: None,
            trace: VecDeque::new(),
            steps: 0,
            sent: 0,
        }
    }

    /// Seeds a bug, which the rules must find.
    pub fn with_bug(mut self, bug: Bug) -> Neighbours {
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
        self.steps += 1;
        self.us += match self.rng.u32(0..1000) {
            0..500 => 1,
            500..900 => self.rng.u64(1..4_000),
            900..998 => self.rng.u64(1_000..60_000),
            _ => self.rng.u64(1_000..2_000_000),
        };
        self.fault()?;
        let key = KEYS[self.rng.usize(0..KEYS.len())];
        if !self.places.contains_key(key) {
            self.create(key)?;
        }
        match self.rng.u8(0..8) {
            0 => self.slice(key)?,
            1 => self.all_slices(key)?,
            _ => self.operation(key)?,
        }
        self.compare()
    }

    /// Compares all queues with their replicas.
    fn compare(&mut self) -> Result<(), String> {
        let closely = self.steps.is_multiple_of(VALIDATED);
        for (key, place) in &self.places {
            let name = String::from_utf8_lossy(key);
            if place.queue.owes() {
                return Err(format!("{name} still owes something to other keys"));
            }
            if let Some(at) = difference(&saved(&place.queue), &saved(&place.replica)) {
                return Err(format!("the replica of {name} differs {at}"));
            }
            if closely {
                validate(&place.queue)?;
                validate(&place.replica)?;
            }
        }
        Ok(())
    }

    fn moment(&self) -> Moment {
        Moment {
            us: self.us,
            receipt: self.receipt.max(self.us),
        }
    }

    fn event(&mut self, what: &'static str) {
        self.note(Entry::Event { us: self.us, what });
    }

    fn note(&mut self, entry: Entry) {
        if self.trace.len() == TRACED {
            self.trace.pop_front();
        }
        self.trace.push_back(entry);
    }

    fn ops<'a>(&'a mut self, now: u64, live: u64, keys: &'a [&'static [u8]]) -> Ops<'a> {
        Ops {
            rng: &mut self.rng,
            profile: &self.profile,
            oracle: &self.oracle,
            now,
            live,
            keys,
        }
    }

    /// A queue is made by DQ.CREATE.
    fn create(&mut self, key: &'static [u8]) -> Result<(), String> {
        let changes = self.ops(self.us / 1000, 0, &KEYS).changes();
        let settings = Settings {
            lease: 40,
            dead_to: self.dead_to(),
            ..Settings::default()
        };
        let creation = Creation {
            settings: settings.with(&changes),
            clock: match self.rng.u8(0..8) {
                0 => Clock::Manual(self.us / 1000),
                _ => Clock::Server,
            },
            salt: self.rng.u64(..),
        };
        self.event("a queue is made");
        self.make(key, creation, &Op::Tick)
            .map(|_| ())
            .map_err(|error| format!("a new queue was refused: {error:?}"))
    }

    fn dead_to(&mut self) -> Option<Box<DeadTo>> {
        let key = KEYS[self.rng.usize(0..KEYS.len())];
        (self.rng.u8(0..4) > 0).then(|| {
            Box::new(DeadTo {
                key: key.into(),
                reasons: 0,
            })
        })
    }

    /// Does an operation that a client asks for, as a command does it.
    fn operation(&mut self, key: &'static [u8]) -> Result<(), String> {
        let begun = self.begin(key)?;
        let Some(place) = self.places.get(key) else {
            return Ok(());
        };
        let (now, live) = (place.queue.now(begun.moment), place.queue.live());
        let op = match self.ops(now, live, &KEYS).any() {
            // Reports come from the children themselves.
            Op::Children(_) => Op::Tick,
            Op::FindDo { act, .. } => self.find(key, act, now),
            Op::Alter(mut changes) => {
                changes.dead_to = self.rng.bool().then(|| self.dead_to());
                Op::Alter(changes)
            }
            Op::AckSend(ack_send) if self.rng.bool() => {
                let to = KEYS[self.rng.usize(0..KEYS.len())];
                if to != key {
                    return self.ack_send_to(key, to, ack_send, begun);
                }
                Op::AckSend(ack_send)
            }
            op => op,
        };
        let Some(place) = self.places.get_mut(key) else {
            return Ok(());
        };
        let bulk = place.queue.plan(&op, now).filter(|_| self.rng.bool());
        if bulk.is_some() {
            place.bulk = bulk;
            return self.finish(key, begun, Op::Tick);
        }
        self.finish(key, begun, op)
    }

    /// Does an operation, and what it means for the other queues.
    fn finish(&mut self, key: &'static [u8], begun: Begun, op: Op<'static>) -> Result<(), String> {
        if let Op::AckSend(ack_send) = &op {
            let place = self.places.get(key);
            let can = place.map(|place| place.queue.can_ack_send(ack_send, begun.moment).is_ok());
            if can != Some(true) {
                return self.finish(key, begun, Op::Tick);
            }
        }
        let done = self.apply(key, begun, &op);
        if let Ok(Done::Fetched(given)) = &done {
            for one in given.iter().filter(|one| one.receipt > 0) {
                self.oracle.note_receipt(one.receipt);
            }
        }
        self.note(Entry::Op {
            us: begun.moment.us,
            steps: begun.before.steps,
            op: Box::new(op),
        });
        if self.bug != Some(Bug::ForgetsWhatIsOwed) {
            self.deliver(key);
        }
        self.failure()
    }

    /// The messages that a search has found.
    fn find(&mut self, key: &'static [u8], act: FindAct, now: u64) -> Op<'static> {
        let conditions = self.ops(now, 0, &KEYS).conditions(act);
        let place = self.places.get(key);
        let found = place.map(|place| place.queue.search(&conditions.search(), now));
        Op::FindDo {
            act,
            seqs: found.map(|(_, seqs)| seqs).unwrap_or_default(),
        }
    }

    /// The work of the timer: one slice of time, and one of a bulk operation.
    fn slice(&mut self, key: &'static [u8]) -> Result<(), String> {
        let begun = self.begin(key)?;
        let most = self.rng.u64(1..8);
        let mut op = Op::Tick;
        if let Some(place) = self.places.get_mut(key) {
            let now = place.queue.now(begun.moment);
            if let Some(plan) = &mut place.bulk {
                match plan.next(&place.queue, most, now) {
                    Step::Do(slice) => op = *slice,
                    Step::Look => {}
                    Step::Done => place.bulk = None,
                }
            }
        }
        self.finish(key, begun, op)
    }

    /// The timer does all that is due in a queue.
    fn all_slices(&mut self, key: &'static [u8]) -> Result<(), String> {
        for _ in 0..100 {
            let Some(place) = self.places.get(key) else {
                break;
            };
            if !place.queue.has_work(place.queue.time(self.moment())) {
                break;
            }
            self.us += 1;
            self.slice(key)?;
        }
        Ok(())
    }
}
