//! Thousands of queues on one server, in one thread: the timer for all of them, times in which the
//! server refuses writes, standstills, a clock that is set back, and queues that come from servers
//! whose clocks are ahead. A single queue is simulated in [`crate::cluster`].

mod bugs;
mod commands;
mod faults;

pub use bugs::{Bug, BUGS};

use std::collections::{BTreeMap, BTreeSet};

use crate::{difference, saved};
use dq_queue::codec::log_entry::{Creation, LogEntry};
use dq_queue::op::{Before, Fetch};
use dq_queue::queue::MAX_LEAD;
use dq_queue::settings::{Clock, Settings};
use dq_queue::{Done, Millis, Moment, Op, Queue, Receipt};

/// When a town begins, in Unix microseconds.
const START_US: u64 = 1_700_000_000_000_000;
/// The lease of every delivery, in ms.
const LEASE: Millis = 60;
/// A lease that is spared lasts longer by this, in ms.
const SPARED: Millis = 20;
/// How many queues get a message that is due in one moment.
const CROWD: usize = 300;
/// The number of steps between two comparisons of all queues with their replicas.
const COMPARED: u64 = 500;
/// The greatest distance of receipts above the highest time.
const MOST_RECEIPTS: Receipt = 1_000_000;

/// One queue, its replica, and the clients that wait for it.
struct Place {
    queue: Queue,
    replica: Queue,
    /// Number of clients that wait in a FETCH.
    waiting: u32,
    /// When the timer checks it, in ms of the server's clock.
    due: Option<Millis>,
    /// Whether the queue has come from a server whose clock was ahead.
    came_ahead: bool,
}

/// A delivery that a worker has.
struct Held {
    place: usize,
    receipt: Receipt,
    /// Until when the lease lasts at least, by the watch of the worker.
    until_us: u64,
}

/// A server with thousands of queues.
pub struct Town {
    rng: fastrand::Rng,
    /// The time that the clock of the server shows, in Unix microseconds, and the latest time it
    /// has shown.
    us: u64,
    latest_us: u64,
    /// The watch of the clients, which is never set.
    watch_us: u64,
    /// The server gives out only receipts from this number on.
    receipt: Receipt,
    places: Vec<Place>,
    /// The queues by the time at which the timer checks them.
    index: BTreeSet<(Millis, usize)>,
    held: Vec<Held>,
    /// The earliest delivery of each message, by the watch of its sender, and its queue.
    may_come: BTreeMap<Vec<u8>, (usize, u64)>,
    /// Whether the server refuses the writes of its clients.
    is_refusing: bool,
    /// Whether leases are spared in this turn.
    is_sparing: bool,
    sent: u64,
    bug: Option<Bug>,
    /// Number of steps so far.
    pub steps: u64,
    /// Number of messages that were delivered so far.
    pub delivered: u64,
}

impl Town {
    /// A server with this number of empty queues.
    pub fn new(seed: u64, queues: usize) -> Town {
        let mut town = Town {
            rng: fastrand::Rng::with_seed(seed),
            us: START_US,
            latest_us: START_US,
            watch_us: 0,
            receipt: START_US,
            places: Vec::new(),
            index: BTreeSet::new(),
            held: Vec::new(),
            may_come: BTreeMap::new(),
            is_refusing: false,
            is_sparing: false,
            sent: 0,
            bug: None,
            steps: 0,
            delivered: 0,
        };
        town.places = (0..queues).map(|number| town.place(number)).collect();
        town
    }

    /// Seeds a bug, which the rules must find.
    pub fn with_bug(mut self, bug: Bug) -> Town {
        self.bug = Some(bug);
        self
    }

    fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    fn place(&self, number: usize) -> Place {
        let settings = Settings {
            lease: LEASE,
            retries: -1,
            ..Settings::default()
        };
        let creation = Creation {
            settings,
            clock: Clock::Server,
            salt: number as u64,
        };
        let mut queue = creation.queue();
        queue.made_at(self.server());
        queue.take_effects();
        Place {
            replica: queue.clone(),
            queue,
            waiting: 0,
            due: None,
            came_ahead: false,
        }
    }

    fn server(&self) -> Moment {
        Moment {
            us: self.us,
            receipt: self.receipt.max(self.us),
        }
    }

    fn pass(&mut self, us: u64) {
        self.us += us;
        self.watch_us += us;
        self.latest_us = self.latest_us.max(self.us);
    }

    /// One turn of the server: time, faults, commands, then the timer.
    ///
    /// # Errors
    /// A sentence that says which rule is broken.
    pub fn step(&mut self) -> Result<(), String> {
        self.steps += 1;
        let passed = self.rng.u64(100..3_000);
        self.pass(passed);
        match self.rng.u32(0..1_000) {
            0..4 => self.is_refusing = true,
            4..10 => self.stand_still()?,
            10 => self.set_back(),
            11..16 => self.arrive(),
            16 => self.restart()?,
            17 => self.send_to_many()?,
            _ => {}
        }
        self.is_refusing &= self.rng.u8(0..20) > 0;
        self.command()?;
        self.turn()?;
        self.look_at_all()?;
        match self.steps % COMPARED {
            0 => self.compare(),
            _ => Ok(()),
        }
    }

    /// Does an operation on a queue, as a server does it: its clock, leases that are spared, due
    /// events, one log entry, and the next check by the timer.
    fn change(&mut self, place: usize, op: &Op<'_>) -> Result<Option<Done>, String> {
        let server = self.server();
        let spares = self.is_sparing && !self.has(Bug::EndsLeasesInAStandstill);
        let queue = &mut self.places[place].queue;
        let mut moment = queue.follow(server);
        let mut before = Before::default();
        let lead = moment.ms().saturating_sub(server.ms());
        if lead > MAX_LEAD {
            (before.cut, moment) = (lead, server);
            queue.prepare(&before, server);
        }
        let now = queue.now(moment);
        if spares && queue.has_lease_before(now + 1) {
            before.spare = now + SPARED;
            queue.spare_leases(before.spare);
        }
        if queue.has_work(now) {
            before.steps = queue.advance(now, 64).steps;
        }
        let done = queue.apply(op, moment).ok();
        let has_changed = queue.take_effects().changed;
        let last = queue.last_receipt();
        if has_changed {
            self.record(place, &LogEntry::of(moment, before, None, op))?;
        }
        // A queue that is ahead has its own receipts.
        if last < server.receipt + MOST_RECEIPTS || self.has(Bug::MovesReceipts) {
            self.receipt = self.receipt.max(last + 1);
        }
        self.plan(place);
        Ok(done)
    }

    fn record(&mut self, place: usize, entry: &LogEntry<'_, '_>) -> Result<(), String> {
        if self.is_refusing {
            return Err(format!(
                "queue {place} has changed while writes were refused"
            ));
        }
        let mut bytes = Vec::new();
        entry.encode_into(&mut bytes);
        let entry = LogEntry::decode(&bytes)?;
        let to = match self.has(Bug::WritesOfAnotherQueue) && self.steps > 50 {
            true => (place + 1) % self.places.len(),
            false => place,
        };
        let replica = &mut self.places[to].replica;
        entry.replay(replica).ok();
        replica.take_effects();
        Ok(())
    }

    /// Notes the time at which the timer is to check a queue.
    fn plan(&mut self, place: usize) {
        if self.has(Bug::ForgetsAQueue) && place % 97 == 5 {
            return;
        }
        let by_itself = self.has(Bug::WakesByTheClockOfTheQueue);
        let server = self.server();
        let of = &mut self.places[place];
        let now = of.queue.time(server);
        let wake = of.queue.next_wake(now, of.waiting > 0);
        let due = wake.map(|wake| match by_itself {
            true => wake.max(now),
            false => of.queue.server_time(wake.max(now)),
        });
        if let Some(before) = std::mem::replace(&mut of.due, due) {
            self.index.remove(&(before, place));
        }
        if let Some(due) = due {
            self.index.insert((due, place));
        }
    }

    /// The timer: a slice of each queue that is due, and then the clients that wait for it are
    /// served.
    fn turn(&mut self) -> Result<(), String> {
        if self.is_refusing && !self.has(Bug::GoesOnWhileItRefuses) {
            return Ok(());
        }
        while let Some(&(due, place)) = self.index.first().filter(|(due, _)| *due <= self.us / 1000)
        {
            self.index.remove(&(due, place));
            self.places[place].due = None;
            self.change(place, &Op::Tick)?;
        }
        for place in 0..self.places.len() {
            while self.can_serve(place) {
                if !self.deliver(place)? {
                    break;
                }
                self.places[place].waiting -= 1;
            }
        }
        self.is_sparing = false;
        Ok(())
    }

    fn can_serve(&self, place: usize) -> bool {
        let of = &self.places[place];
        let now = of.queue.time(self.server());
        of.waiting > 0 && of.queue.can_serve(&Fetch::one(), now)
    }

    /// Checks that after a turn no queue has work left, unless writes are refused.
    fn look_at_all(&self) -> Result<(), String> {
        if self.is_refusing {
            return Ok(());
        }
        let server = self.server();
        for (number, place) in self.places.iter().enumerate() {
            if place.queue.lead(server) > MAX_LEAD {
                return Err(format!("queue {number} is ahead by too much"));
            }
            // A queue whose clock shows the middle of a millisecond wakes at the next one.
            let now = place.queue.time(server).saturating_sub(2);
            // A queue that is behind continues at the next millisecond.
            let is_next = place.due.is_some_and(|due| due <= self.us / 1000 + 1);
            if place.queue.has_work(now) && !is_next {
                return Err(format!(
                    "queue {number} is due, and nobody has looked at it"
                ));
            }
            if self.can_serve(number) {
                return Err(format!("nobody serves those who wait for queue {number}"));
            }
        }
        Ok(())
    }

    /// Compares every queue with its replica.
    ///
    /// # Errors
    /// A sentence that names a queue that differs.
    pub fn compare(&self) -> Result<(), String> {
        for (number, place) in self.places.iter().enumerate() {
            if let Some(at) = difference(&saved(&place.queue), &saved(&place.replica)) {
                return Err(format!("the replica of queue {number} differs {at}"));
            }
        }
        Ok(())
    }
}
