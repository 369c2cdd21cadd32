//! One queue on its way: claim, ledger, send, delete.

mod batch;
mod begin;
mod pace;

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use redis::Value;

use super::disk::Answer;
use super::ends::{Back, Ends};
use super::fault::{at_source, at_target_end};
use super::keys::Keys;
use super::peer::{command, on, Names, Peer, Place, Running, Seen, State};
use super::read::{number, texts};
use super::record::{Bytes, Record};
use super::script::SCRIPT;
use crate::failure::Failure;
use crate::text::printable;
use batch::Batch;
pub use pace::Pace;

/// How long the jobs that stay in a place are passed over before they are looked at again.
const AGAIN: Duration = Duration::from_secs(2);

/// The most claimed jobs that are at the target and not deleted.
const WINDOW: usize = 100_000;

/// The claims of a place that are under way at once. The source works on one while the reply of the other is read.
const DEPTH: usize = 2;

/// One queue on its way.
pub struct Lane {
    /// Its names.
    pub names: Names,
    /// The queue as it was seen at the start.
    pub seen: Seen,
    /// The keys of its import.
    pub keys: Keys,
    /// Jobs moved, by place.
    pub moved: BTreeMap<String, u64>,
    /// Jobs that stay, by reason.
    pub stays: BTreeMap<String, u64>,
    /// Jobs that workers of the peer have lost.
    pub lost: Vec<Bytes>,
    /// Whether the new queue pauses by now: it delivers nothing, and so makes no dead message.
    pub is_paused: bool,
    token: String,
    marker: String,
    /// The number of the last job that is at the target.
    sent: u64,
    /// The jobs of the claim list that are at the target, or stay.
    window: Window,
    /// Those before them, for which the disks are waited for.
    settling: Option<(Window, Answer)>,
    /// The jobs that are being sent.
    sending: Option<Batch>,
    settled_at: Instant,
    /// The clock of the source less our own, ms.
    skew: i64,
    /// The jobs that have stayed in each place.
    passed: BTreeMap<String, Passed>,
}

impl Lane {
    /// Deletes what is at the target from the claim list, once the disks have it.
    pub fn settle(&mut self, ends: &mut Ends) -> Result<(), Failure> {
        self.settle_asked(ends, true)?;
        self.ask_disks(ends)?;
        self.settle_asked(ends, true)
    }

    /// Deletes what the disks have, and asks them for more if it is time for that.
    pub fn settle_in_time(&mut self, ends: &mut Ends, pace: &dyn Pace) -> Result<(), Failure> {
        let is_much = self.window.count >= WINDOW;
        self.settle_asked(ends, is_much)?;
        if self.settling.is_none() && (is_much || self.settled_at.elapsed() >= pace.settle()) {
            self.ask_disks(ends)?;
        }
        Ok(())
    }

    fn ask_disks(&mut self, ends: &mut Ends) -> Result<(), Failure> {
        if self.window.count > 0 {
            ends.ledger.write()?;
            let answer = ends.disk.ask(format!("{}:disk", self.marker));
            self.settling = Some((std::mem::take(&mut self.window), answer));
        }
        self.settled_at = Instant::now();
        Ok(())
    }

    fn settle_asked(&mut self, ends: &mut Ends, waits: bool) -> Result<(), Failure> {
        let Some((window, answer)) = &self.settling else {
            return Ok(());
        };
        if answer.has_come(waits)? {
            ends.settle(&self.keys, &self.token, window.count, &window.staying)?;
            self.settling = None;
        }
        Ok(())
    }

    /// Moves what a place has. Returns how many jobs went.
    pub fn pass(
        &mut self,
        ends: &mut Ends,
        peer: &dyn Peer,
        place: &Place,
        pace: &mut dyn Pace,
    ) -> Result<u64, Failure> {
        let known = self
            .passed
            .get(&place.name)
            .filter(|known| known.count > SCRIPT as u64 && known.at.elapsed() < AGAIN);
        let begins = known.is_none();
        let mut offset = known.map_or(0, |known| known.count);
        let mut why = BTreeMap::<String, u64>::new();
        let mut moved = 0;
        if pace.stop().is_asked() {
            return Ok(0);
        }
        let mut asked = VecDeque::from([self.claim(ends, place, offset, pace.size())?]);
        let mut is_over = false;
        while let Some(claim) = asked.pop_front() {
            let pulled = claim.pulled(ends)?;
            // A claim that was asked before the last ones were seen meets them again.
            let seen = (offset - claim.offset) as usize;
            let passed = pulled.passed.get(seen..).unwrap_or_default();
            offset += passed.len() as u64;
            for (_, reason) in passed.iter().filter(|(id, _)| !id.is_empty()) {
                *why.entry(reason.clone()).or_default() += 1;
            }
            let is_empty = pulled.claimed.is_empty();
            is_over |= pace.stop().is_asked() || is_empty && passed.is_empty() && seen == 0;
            let depth = if is_empty { 1 } else { DEPTH };
            while !is_over && asked.len() < depth {
                asked.push_back(self.claim(ends, place, offset, pace.size())?);
            }
            let went = match is_empty {
                true => self.confirm(ends, pace.stop())?,
                false => {
                    let records = self.unpack(pulled.claimed)?;
                    self.push(ends, peer, records, pace.stop())?
                }
            };
            self.settle_in_time(ends, pace)?;
            pace.went(went);
            moved += went;
        }
        let went = self.confirm(ends, pace.stop())?;
        pace.went(went);
        moved += went;
        if begins {
            let known = Passed {
                count: offset,
                at: Instant::now(),
                why,
            };
            self.passed.insert(place.name.clone(), known);
        }
        Ok(moved)
    }

    /// Takes the jobs that workers have lost. Returns how many went.
    pub fn take_lost(
        &mut self,
        ends: &mut Ends,
        peer: &dyn Peer,
        running: &Running,
        pace: &mut dyn Pace,
    ) -> Result<u64, Failure> {
        let mut moved = 0;
        for mut place in self.places(&[State::Running]) {
            let words = place.words.clone();
            for ids in running.lost.chunks(SCRIPT) {
                place.words.clone_from(&words);
                place.words.push(running.since.to_string().into_bytes());
                place.words.extend(ids.iter().cloned());
                moved += self.pass(ends, peer, &place, pace)?;
            }
            // Those that stay are named as lost.
            self.passed.remove(&place.name);
        }
        Ok(moved)
    }

    /// Returns what stays in its place, by reason, as it was seen last.
    pub fn passed_over(&self) -> BTreeMap<String, u64> {
        let mut all = BTreeMap::new();
        for (reason, count) in self.passed.values().flat_map(|known| &known.why) {
            *all.entry(reason.clone()).or_default() += count;
        }
        all
    }

    /// Renews the lease.
    pub fn hold(&self, ends: &mut Ends) -> Result<(), Failure> {
        ends.hold(&self.keys, &self.token)
    }

    /// Puts the claimed jobs that stay back into their places.
    fn put_back(&mut self, ends: &mut Ends) -> Result<(), Failure> {
        loop {
            let mut range = on("LRANGE", &self.keys.stays);
            range.arg(-(SCRIPT as i64)).arg(-1);
            let packed = texts(ends.source.call(&range).map_err(at_source)?).into_iter();
            let records: Vec<Record> = packed.rev().filter_map(Record::unpack).collect();
            if records.is_empty() {
                return Ok(());
            }
            for id in ends.put_back(&self.keys, &records, Back::Stays)? {
                let list = printable(&self.keys.conflicts);
                eprintln!(
                    "dq: SOURCE {}: this id is in use again, so its job is in {list}",
                    printable(&id)
                );
            }
        }
    }

    /// Ends the import of the queue: nothing of it is left at either end.
    pub fn end(mut self, ends: &mut Ends) -> Result<Lane, Failure> {
        self.settle(ends)?;
        self.put_back(ends)?;
        if number(&mut ends.source, &on("LLEN", &self.keys.claim)).map_err(at_source)? == 0 {
            self.end_marker(ends)?;
            ends.source
                .call(on("DEL", &self.keys.state).arg(&self.keys.lease))
                .map_err(at_source)?;
        }
        Ok(self)
    }

    /// Gives the new queue the limits of the old one, and lets it pause if that does. Dead jobs are there by then, which
    /// have to be delivered to be dead.
    pub fn limit(&mut self, ends: &mut Ends) -> Result<(), Failure> {
        for words in self.seen.settings.iter().chain(&self.seen.pause) {
            ends.target.call(&command(words)).map_err(at_target_end)?;
        }
        self.is_paused = !self.seen.pause.is_empty();
        Ok(())
    }

    /// Returns the places of these states, without that of dead jobs if nothing can be delivered any more.
    pub fn places(&self, states: &[State]) -> Vec<Place> {
        let places = self.seen.places.iter();
        places
            .filter(|place| states.contains(&place.state))
            .filter(|place| place.state != State::Dead || !self.is_paused)
            .cloned()
            .collect()
    }

    /// Returns how many jobs are in the places, as many as stay there not counted.
    pub fn left(&self, ends: &mut Ends) -> Result<u64, Failure> {
        let places = self.seen.places.iter();
        let places = places.filter(|place| place.state != State::Running);
        let cmds: Vec<_> = places.map(Place::count).collect();
        let mut all = 0;
        for reply in ends.source.pipeline(&cmds).map_err(at_source)? {
            if let Value::Int(count) = reply.map_err(at_source)? {
                all += count.unsigned_abs();
            }
        }
        Ok(all.saturating_sub(self.passed_over().values().sum()))
    }
}

/// The jobs that were passed over in a place.
struct Passed {
    count: u64,
    at: Instant,
    why: BTreeMap<String, u64>,
}

/// Jobs of the claim list that are next to each other.
#[derive(Default)]
struct Window {
    count: usize,
    /// Those of them that stay.
    staying: Vec<Bytes>,
}
