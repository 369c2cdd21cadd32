//! One queue on its way: claim, ledger, send, delete.

mod begin;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use redis::Value;

use super::ends::{at_source, at_target_end, claim, is_time, Back, Ends, Keys, Want, SCRIPT};
use super::ledger::Entry;
use super::peer::{on, Names, Peer, Place, Running, Seen, State, Words};
use super::read::{number, texts};
use super::record::{Bytes, Record};
use super::stop::Stop;
use crate::failure::Failure;
use crate::model::record::unexpected;
use crate::text::printable;
use crate::time_text::here;

/// The first and the longest wait for a target that is full, ms.
const WAITS: (u64, u64) = (100, 5000);

/// How long the jobs that stay in a place are passed over before they are looked at again.
const AGAIN: Duration = Duration::from_secs(2);

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
    /// How many jobs at the head of the claim list are at the target, or stay.
    window: usize,
    /// Those of the window that stay.
    staying: Vec<Bytes>,
    settled_at: Instant,
    /// The clock of the source less our own, ms.
    skew: i64,
    /// The jobs that have stayed in each place.
    passed: BTreeMap<String, Passed>,
}

impl Lane {
    /// Claims from a place, or from none, and reads the claimed jobs that are not at the target. Returns those, and what was
    /// passed over in the place, as id and reason.
    fn pull(
        &mut self,
        ends: &mut Ends,
        place: Option<&Place>,
        offset: u64,
        want: usize,
    ) -> Result<Pulled, Failure> {
        let mut cmds = Vec::new();
        if let Some(place) = place {
            let scripts = if offset == 0 {
                want.div_ceil(SCRIPT)
            } else {
                1
            };
            for _ in 0..scripts {
                let want = Want {
                    offset,
                    count: want.min(SCRIPT),
                    now: here().saturating_add_signed(self.skew),
                };
                cmds.push(claim(
                    &ends.peer,
                    &self.keys,
                    place,
                    "take",
                    &self.token,
                    want,
                ));
            }
        }
        let mut range = on("LRANGE", &self.keys.claim);
        range
            .arg(self.window)
            .arg(self.window + want.max(SCRIPT) - 1);
        cmds.push(range);
        let mut replies = ends.source.pipeline(&cmds).map_err(at_source)?;
        let claimed = texts(replies.pop().ok_or_else(unexpected)?.map_err(at_source)?);
        let mut pulled = Pulled::default();
        for reply in replies {
            pulled.passed = passed(reply.map_err(at_source)?)?;
        }
        for packed in claimed {
            pulled.records.push(Record::unpack(packed).ok_or_else(|| {
                let list = printable(&self.keys.claim);
                Failure::mistake(format!(
                    "UNKNOWN {list}: another version of dq has claimed jobs there"
                ))
            })?);
        }
        Ok(pulled)
    }

    /// Brings claimed jobs into the ledger and to the target. Waits while that is full.
    fn push(
        &mut self,
        ends: &mut Ends,
        peer: &dyn Peer,
        records: Vec<Record>,
        stop: &Stop,
    ) -> Result<u64, Failure> {
        ends.ledger
            .turn(&self.names.queue, &self.names.key, &self.marker);
        let mut jobs = Vec::with_capacity(records.len());
        let mut why = BTreeMap::new();
        for record in &records {
            ends.ledger.add_job(&self.marker, record);
            jobs.push((
                record.number,
                peer.translate(record, &self.names)
                    .unwrap_or_else(|reason| {
                        why.insert(record.number, reason);
                        Vec::new()
                    }),
            ));
        }
        ends.ledger.write()?;
        let (mut wait, mut rest) = (WAITS.0, jobs.as_slice());
        while !rest.is_empty() {
            let sent = ends.send(&self.names.key, &self.marker, rest)?;
            self.sent = self.sent.max(sent.last);
            why.extend(
                sent.taken
                    .iter()
                    .map(|number| (*number, "ID TAKEN at the target".to_owned())),
            );
            rest = rest
                .get(rest.partition_point(|(number, _)| *number <= self.sent)..)
                .unwrap_or_default();
            if sent.refused.is_empty() {
                continue;
            }
            let words = printable(sent.refused.as_bytes());
            if !["QUEUEFULL", "OOM", "PAUSED"]
                .iter()
                .any(|word| words.contains(word))
            {
                return Err(Failure::Refused(format!(
                    "TARGET {}: {words}",
                    printable(&self.names.key)
                )));
            }
            if stop.is_asked() {
                break;
            }
            if wait == WAITS.0 {
                eprintln!(
                    "dq: TARGET {}: {words}: waiting",
                    printable(&self.names.key)
                );
            }
            ends.hold(&self.keys, &self.token)?;
            stop.sleep(Duration::from_millis(wait));
            wait = (wait * 2).min(WAITS.1);
        }
        let mut moved = 0;
        for record in records
            .into_iter()
            .filter(|record| record.number <= self.sent)
        {
            self.window += 1;
            match why.remove(&record.number) {
                Some(reason) => {
                    *self.stays.entry(reason).or_default() += 1;
                    ends.ledger.add(&Entry::Stays(record.number));
                    self.staying.push(record.packed);
                }
                None => {
                    *self.moved.entry(record.place).or_default() += 1;
                    moved += 1;
                }
            }
        }
        Ok(moved)
    }

    /// Deletes what is at the target from the claim list.
    pub fn settle(&mut self, ends: &mut Ends) -> Result<(), Failure> {
        if self.window > 0 {
            ends.settle(&self.keys, &self.token, self.window, &self.staying)?;
            self.window = 0;
            self.staying.clear();
        }
        self.settled_at = Instant::now();
        Ok(())
    }

    /// Deletes what is at the target, if it is time for that.
    pub fn settle_in_time(&mut self, ends: &mut Ends, pace: &dyn Pace) -> Result<(), Failure> {
        match is_time(self.window, self.settled_at, pace.settle()) {
            true => self.settle(ends),
            false => Ok(()),
        }
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
        while !pace.stop().is_asked() {
            let pulled = self.pull(ends, Some(place), offset, pace.size())?;
            offset += pulled.passed.len() as u64;
            for (_, reason) in pulled.passed.iter().filter(|(id, _)| !id.is_empty()) {
                *why.entry(reason.clone()).or_default() += 1;
            }
            if pulled.records.is_empty() {
                if pulled.passed.is_empty() {
                    break;
                }
                continue;
            }
            let went = self.push(ends, peer, pulled.records, pace.stop())?;
            moved += went;
            self.settle_in_time(ends, pace)?;
            pace.went(went);
        }
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

/// The jobs that a claim brought.
#[derive(Debug, Default)]
struct Pulled {
    records: Vec<Record>,
    passed: Vec<(Bytes, String)>,
}

/// The jobs that were passed over in a place.
struct Passed {
    count: u64,
    at: Instant,
    why: BTreeMap<String, u64>,
}

/// The pace of an import: how fast it goes.
pub trait Pace {
    /// Returns how many jobs the next batch has.
    fn size(&mut self) -> usize;
    /// Notes that jobs have gone, and waits if they went too fast.
    fn went(&mut self, jobs: u64);
    /// Returns what says that it is to end.
    fn stop(&self) -> &Stop;
    /// Returns the shortest time between two deletes from a claim list.
    fn settle(&self) -> Duration;
}

/// Reads the second part of the reply of a claim: ids, each with the reason for which it stays.
pub fn passed(reply: Value) -> Result<Vec<(Bytes, String)>, Failure> {
    let Value::Array(mut parts) = reply else {
        return Err(unexpected());
    };
    let pairs = texts(parts.pop().ok_or_else(unexpected)?);
    let pairs = pairs.chunks_exact(2).filter_map(|pair| {
        let reason = String::from_utf8_lossy(pair.get(1)?).into_owned();
        Some((pair.first()?.clone(), reason))
    });
    Ok(pairs.collect())
}

/// Makes a command of words.
pub fn command(words: &Words) -> redis::Cmd {
    let mut cmd = redis::Cmd::new();
    for word in words {
        cmd.arg(word);
    }
    cmd
}
