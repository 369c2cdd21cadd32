//! `--undo`: what has not been delivered yet goes back to where it was, in the opposite order.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::json;

use super::args::{From, ImportArgs};
use super::ends::{Back, Ends};
use super::fault::{at_source, at_target_end};
use super::keys::{at_target, Keys};
use super::ledger::{new_id, Entry, Ledger, Reader};
use super::peer::{on, Names, Peer};
use super::read::{clock, number, text, texts};
use super::record::{Bytes, Record};
use super::run::peer;
use crate::failure::Failure;
use crate::output::Output;
use crate::server::Server;
use crate::text::{plural, printable};

/// The jobs of one step.
const STEP: usize = 50;

/// A queue in the ledger.
struct Run {
    names: Names,
    keys: Keys,
    /// Where its jobs are in the ledger, the last one first.
    jobs: Vec<u64>,
}

/// Puts back. The third connection is another one to the target.
pub fn run(
    [source, mut target, waiting]: [Server; 3],
    path: &Path,
    args: &ImportArgs,
    out: &mut Output,
) -> Result<(), Failure> {
    let mut reader = Reader::open(path)?;
    let about = reader.about.clone();
    let kind = about["peer"].as_str().unwrap_or_default().to_owned();
    let kind = <From as clap::ValueEnum>::from_str(&kind, true)
        .map_err(|_| Failure::mistake(format!("{}: UNKNOWN peer {kind}", path.display())))?;
    let args = ImportArgs {
        hash_tag: about["hash_tag"] == true,
        ..args.clone()
    };
    let peer = peer(kind, about["prefix"].as_str(), &args)?;
    let now = clock(&mut target).map_err(at_target_end)?;
    let runs = read(&mut reader, peer.as_ref(), now)?;
    let id = reader.id.clone();
    let ledger = Ledger::open(path, &about)?;
    let mut ends = Ends::new(source, target, waiting, ledger, peer.as_ref())?;
    let token = format!("{id} {} {}", path.display(), new_id()?);
    let (mut back, mut gone) = (0, 0);
    for run in &runs {
        ends.hold(&run.keys, &token)?;
        let claimed = number(&mut ends.source, &on("LLEN", &run.keys.claim)).map_err(at_source)?;
        if claimed > 0 {
            return Err(Failure::mistake(format!(
                "{}: {claimed} jobs are on their way: let the import of this ledger run to its end first",
                run.names.queue
            )));
        }
        let mut undo = Undo {
            list: at_target(&run.names.key, "undo", &id),
            reader: &mut reader,
            peer: peer.as_ref(),
            run,
        };
        let mut at = undo.go_on(&mut ends)?;
        while at < run.jobs.len() {
            let step = STEP.min(run.jobs.len() - at);
            let went = undo.step(&mut ends, at, step)?;
            back += went as u64;
            gone += (step - went) as u64;
            at += step;
            ends.hold(&run.keys, &token)?;
        }
        ends.source
            .call(on("DEL", &run.keys.undone).arg(&run.keys.lease))
            .map_err(at_source)?;
    }
    match out.json {
        true => out.json(&json!({ "back": back, "not_there": gone })),
        false => out.line(&format!(
            "{} put back, {} of the ledger had been delivered, changed or removed",
            plural(back, "job"),
            gone
        )),
    }
}

/// Where a job is in the ledger, its number, and the marker of its run.
type Found = (u64, u64, String);

/// Reads which jobs the ledger has. Those that stayed at the source are left out.
fn read(reader: &mut Reader, peer: &dyn Peer, now: u64) -> Result<Vec<Run>, Failure> {
    let mut runs: Vec<(Run, Vec<Found>)> = Vec::new();
    let mut stayed = BTreeSet::new();
    let (mut current, mut marker) = (None, String::new());
    loop {
        let at = reader.at;
        match reader.next()? {
            None => break,
            Some(Entry::Run(queue, key, run)) => {
                marker = run;
                let known = runs
                    .iter()
                    .position(|(run, _)| run.names.queue == queue && run.names.key == key);
                current = Some(known.unwrap_or_else(|| {
                    let keys = Keys::of(peer.stem(&queue));
                    runs.push((
                        Run {
                            names: Names { queue, key, now },
                            keys,
                            jobs: Vec::new(),
                        },
                        Vec::new(),
                    ));
                    runs.len() - 1
                }));
            }
            Some(Entry::Job(packed)) => {
                let number = Record::unpack(packed).map(|record| record.number);
                if let (Some((_, jobs)), Some(number)) =
                    (current.and_then(|nth| runs.get_mut(nth)), number)
                {
                    jobs.push((at, number, marker.clone()));
                }
            }
            Some(Entry::Stays(number)) => {
                stayed.insert((marker.clone(), number));
            }
        }
    }
    let runs = runs.into_iter().map(|(mut run, jobs)| {
        let jobs = jobs.into_iter().rev();
        let jobs = jobs.filter(|(_, number, marker)| !stayed.contains(&(marker.clone(), *number)));
        run.jobs = jobs.map(|(at, _, _)| at).collect();
        run
    });
    Ok(runs.collect())
}

struct Undo<'a> {
    /// The list at the target of the messages that have gone and are not yet put back.
    list: String,
    reader: &'a mut Reader,
    peer: &'a dyn Peer,
    run: &'a Run,
}

impl Undo<'_> {
    /// Puts back what an interrupted undo has taken. Returns how far that had come.
    fn go_on(&mut self, ends: &mut Ends) -> Result<usize, Failure> {
        let undone = text(
            ends.source
                .call(&on("GET", &self.run.keys.undone))
                .map_err(at_source)?,
        );
        let place = |text: &Bytes| String::from_utf8_lossy(text).parse::<usize>().unwrap_or(0);
        let undone = undone.as_ref().map_or(0, place);
        let range = on("LRANGE", self.list.as_bytes()).arg(0).arg(-1).clone();
        let taken = texts(ends.target.call(&range).map_err(at_target_end)?);
        let places: Vec<usize> = taken
            .iter()
            .map(place)
            .filter(|nth| *nth > undone)
            .collect();
        self.put_back(ends, &places)?;
        Ok(places.last().copied().unwrap_or(undone))
    }

    /// Takes some messages out of the queue, and puts back those that nobody had got. Returns how many.
    fn step(&mut self, ends: &mut Ends, from: usize, count: usize) -> Result<usize, Failure> {
        let mut jobs = Vec::new();
        for nth in from..from + count {
            let record = self.record(nth)?;
            jobs.push((
                nth + 1,
                self.peer.id(&record),
                self.peer.forget(&record, &self.run.names),
            ));
        }
        let taken = ends.take_back(&self.run.names.key, self.list.as_bytes(), &jobs)?;
        self.put_back(ends, &taken)?;
        Ok(taken.len())
    }

    /// Puts back the jobs of these places, which begin with 1.
    fn put_back(&mut self, ends: &mut Ends, places: &[usize]) -> Result<(), Failure> {
        let mut records = Vec::new();
        for place in places {
            records.push(self.record(place - 1)?);
        }
        if let Some(last) = places.last() {
            for id in ends.put_back(&self.run.keys, &records, Back::Undo(*last as u64))? {
                let list = printable(&self.run.keys.conflicts);
                eprintln!(
                    "dq: SOURCE {}: this id is in use again, so its job is in {list}",
                    printable(&id)
                );
            }
        }
        ends.target
            .call(&on("DEL", self.list.as_bytes()))
            .map_err(at_target_end)?;
        Ok(())
    }

    fn record(&mut self, nth: usize) -> Result<Record, Failure> {
        let at = self.run.jobs.get(nth).copied().unwrap_or_default();
        match self.reader.entry_at(at)? {
            Some(Entry::Job(packed)) => Record::unpack(packed),
            _ => None,
        }
        .ok_or_else(|| Failure::mistake("LEDGER: it has changed"))
    }
}
