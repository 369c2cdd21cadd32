//! An import from its beginning to its end.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::args::{DeadJobs, From, ImportArgs, RunningJobs};
use super::ends::Ends;
use super::fault::{at_source, at_target_end};
use super::lane::{Lane, Pace};
use super::ledger::Ledger;
use super::peer::{
    on, BullMq, BullOptions, Celery, CeleryOptions, DelayQueue, Dramatiq, Laravel, Names, Peer,
    Running, State,
};
use super::pulse::Pulse;
use super::read::{clock, info};
use super::report::{end, Done, Progress};
use super::stop::Stop;
use super::{dry, undo};
use crate::failure::Failure;
use crate::output::Output;
use crate::server::{Endpoint, Server};
use crate::text::printable;

/// The time between two looks at queues in which nothing waits.
const LOOK: Duration = Duration::from_millis(15);

/// The shortest time between two questions whether both disks have what was moved, which then is deleted from the claim
/// list. Under `--follow` a disk has the less to do the more seldom it is asked.
const SETTLE: Duration = Duration::from_millis(200);
const SETTLE_FOLLOWING: Duration = Duration::from_secs(2);

/// The time between two looks at what workers have, and between two renewals of a lease.
const OFTEN: Duration = Duration::from_secs(2);

/// The lanes that go first, and those that go as long as the import runs.
const DEAD: [State; 1] = [State::Dead];
const LIVE: [State; 2] = [State::Waiting, State::Delayed];

/// Runs `dq import` of a peer.
pub fn run(endpoint: &Endpoint, args: &ImportArgs, out: &mut Output) -> Result<(), Failure> {
    let from = endpoint.at(&args.from, "--from");
    let to = args
        .to
        .as_ref()
        .map_or(endpoint.clone(), |url| endpoint.at(url, "--to"));
    let mut source = from.connect_peer().map_err(at_source)?;
    let mut target = to.connect().map_err(at_target_end)?;
    let waiting = to.connect().map_err(at_target_end)?;
    if let Some(path) = &args.undo {
        return undo::run([source, target, waiting], path, args, out);
    }
    let Some(kind) = args.peer else {
        return Err(Failure::mistake("name the system whose queue it is"));
    };
    let mut peer = peer(kind, args.prefix.as_deref(), args)?;
    let names = names(peer.as_ref(), args, &mut source, &mut target)?;
    if args.dry_run {
        return dry::run(peer.as_mut(), source, target, &names, args, out);
    }
    let path = args
        .ledger
        .clone()
        .unwrap_or_else(|| PathBuf::from(format!("dq-import-{}.ledger", name(kind))));
    let about = json!({
        "peer": name(kind), "from": place(&args.from, &source),
        "to": place(args.to.as_deref().unwrap_or_default(), &target), "prefix": args.prefix,
        "hash_tag": args.hash_tag,
    });
    let ledger = Ledger::open(&path, &about)?;
    let ends = Ends::new(source, target, waiting, ledger, peer.as_ref())?;
    let stop = Stop::listen()?;
    let ledger_name = path.display().to_string();
    let import = Import {
        pulse: Pulse::start([&from, &to], args.fast)?,
        progress: Progress::new(out.json),
        stop,
        rate: args.rate,
        began: Instant::now(),
        gone: 0,
        ends,
        lanes: Vec::new(),
        args,
    };
    if !import.ends.disk.asks_target {
        eprintln!(
            "dq: the target cannot be asked whether its disk has what it was sent (WAITAOF): with less than appendfsync always, \
             what it loses in a crash is lost"
        );
    }
    // A signal interrupts the first thread, and must not interrupt a wait for a server.
    let done = thread::scope(|scope| {
        scope
            .spawn(|| import.run(peer.as_mut(), names, &ledger_name))
            .join()
    });
    let done = done
        .map_err(|_| Failure::mistake("the import has failed: start it again, and it goes on"))??;
    end(&done, out)
}

/// Returns how the ledger names a server. Of one that Sentinels name these are it, as the primary may be another one by then.
fn place(url: &str, server: &Server) -> String {
    let hosts = url
        .split_once("+sentinel://")
        .map(|(_, rest)| rest.rsplit('@').next());
    hosts.flatten().unwrap_or(server.place()).to_owned()
}

/// Returns the peer of a name, with the prefix of its keys.
pub fn peer(kind: From, prefix: Option<&str>, args: &ImportArgs) -> Result<Box<dyn Peer>, Failure> {
    Ok(match kind {
        From::Bullmq | From::Bull => Box::new(BullMq::new(
            prefix,
            BullOptions {
                is_bull: kind == From::Bull,
                version: args.peer_version,
                stalls: args.max_stalled,
            },
        )),
        From::Celery => Box::new(Celery::new(
            prefix,
            CeleryOptions {
                sep: args.sep.clone(),
                steps: args.priority_steps.clone(),
                visibility: args.visibility_timeout,
            },
        )),
        From::Laravel => Box::new(Laravel::new(prefix)),
        From::Dramatiq => Box::new(Dramatiq::new(prefix)),
        From::Delayqueue => Box::new(DelayQueue::new(prefix, args.hash_tag)),
        From::Jsonl => return Err(Failure::mistake("a file has no peer")),
    })
}

/// Returns the name of a peer on the command line.
pub fn name(kind: From) -> String {
    let value = clap::ValueEnum::to_possible_value(&kind);
    value.map_or(String::new(), |value| value.get_name().to_owned())
}

/// Returns the names of the queues there and here. Refuses what cannot go well.
fn names(
    peer: &dyn Peer,
    args: &ImportArgs,
    source: &mut Server,
    target: &mut Server,
) -> Result<Vec<Names>, Failure> {
    let queues = match args.queue.iter().any(|queue| queue == "*") {
        true => peer.queues(source).map_err(at_source)?,
        false => args.queue.clone(),
    };
    if queues.is_empty() {
        return Err(Failure::mistake(
            "no queue: name one with --queue, or all with --queue '*'",
        ));
    }
    let mut seen = BTreeSet::new();
    let queues = queues
        .into_iter()
        .filter(|queue| seen.insert(queue.clone()));
    let is_same = source.db() == target.db() && {
        let id = info(source, "server", "run_id");
        id.is_some() && id == info(target, "server", "run_id")
    };
    let now = clock(target).map_err(at_target_end)?;
    let mut all = Vec::new();
    for queue in queues {
        let key = match &args.into {
            Some(pattern) => pattern.replace("{queue}", &queue),
            None if is_same => format!("dq:{queue}"),
            None => peer.key(&queue),
        };
        if is_same && key.as_bytes() == peer.stem(&queue) {
            return Err(Failure::mistake(format!(
                "source and target are one database, and {key} is the name of the old queue: name another key with --into"
            )));
        }
        match target.call(&on("DQ.INFO", key.as_bytes())) {
            Err(failure)
                if failure.is_about_key() && failure.to_string().starts_with("WRONGTYPE") =>
            {
                return Err(Failure::mistake(format!(
                    "TYPE TARGET: {} is no queue of dq",
                    printable(key.as_bytes())
                )));
            }
            Err(failure) if !failure.is_about_key() => return Err(at_target_end(failure)),
            _ => {}
        }
        all.push(Names {
            queue,
            key: key.into_bytes(),
            now,
        });
    }
    Ok(all)
}

/// An import that runs.
struct Import<'a> {
    pulse: Pulse,
    progress: Progress,
    stop: Stop,
    rate: Option<u64>,
    began: Instant,
    gone: u64,
    ends: Ends,
    lanes: Vec<Lane>,
    args: &'a ImportArgs,
}

/// The part of an import that says how fast it goes.
struct Going<'a> {
    pulse: &'a mut Pulse,
    progress: &'a mut Progress,
    stop: &'a Stop,
    settle: Duration,
    rate: Option<u64>,
    began: Instant,
    gone: &'a mut u64,
}

impl Pace for Going<'_> {
    fn size(&mut self) -> usize {
        let size = self.pulse.size();
        // A tenth of a second at a time.
        self.rate
            .map_or(size, |rate| size.min((rate / 10).max(1) as usize))
    }

    fn went(&mut self, jobs: u64) {
        *self.gone += jobs;
        self.progress.add(jobs);
        if let Some(rate) = self.rate {
            let due = Duration::from_secs_f64(*self.gone as f64 / rate as f64);
            self.stop.sleep(due.saturating_sub(self.began.elapsed()));
        }
    }

    fn stop(&self) -> &Stop {
        self.stop
    }

    fn settle(&self) -> Duration {
        self.settle
    }
}

impl Import<'_> {
    /// Moves all queues, dead jobs first, until nothing waits or a signal comes.
    fn run(
        mut self,
        peer: &mut dyn Peer,
        names: Vec<Names>,
        ledger: &str,
    ) -> Result<Done, Failure> {
        for names in names {
            let lane = Lane::begin(&mut self.ends, peer, names, ledger, &self.stop)?;
            self.lanes.push(lane);
        }
        self.began = Instant::now();
        self.count()?;
        if self.args.dead == DeadJobs::Take {
            self.pass(peer, &DEAD, &[])?;
        }
        for lane in &mut self.lanes {
            lane.limit(&mut self.ends)?;
        }
        let takes = self.args.running == RunningJobs::Take;
        let (mut looked, mut running, mut said) = (None::<Instant>, Vec::new(), None);
        loop {
            let mut moved = self.pass(peer, &LIVE, &[])?;
            if self.stop.is_asked() {
                break;
            }
            if looked.is_none_or(|at| at.elapsed() >= OFTEN) {
                looked = Some(Instant::now());
                if self.args.dead == DeadJobs::Take && self.args.follow {
                    self.pass(peer, &DEAD, &[])?;
                }
                running = self.running(peer)?;
                let remark = running.iter().find_map(|running| running.remark.clone());
                if let Some(words) = remark.as_ref().filter(|_| remark != said) {
                    eprintln!("dq: {words}");
                }
                said = remark;
                if takes {
                    moved += self.pass(peer, &[], &running)?;
                    running = self.running(peer)?;
                }
                self.count()?;
            }
            let waits = self.args.running != RunningJobs::Leave;
            let is_over = running
                .iter()
                .zip(&self.lanes)
                .all(|(running, lane)| running.count <= lane.lost.len() as u64);
            if !self.args.follow && moved == 0 && (is_over || !waits) {
                let had: Vec<_> = self.lanes.iter().map(|lane| lane.lost.len()).collect();
                running = self.running(peer)?;
                let has: Vec<_> = self.lanes.iter().map(|lane| lane.lost.len()).collect();
                if self.pass(peer, &LIVE, &[])? == 0 && (!takes || has == had) {
                    break;
                }
            }
            if moved == 0 {
                self.stop.sleep(LOOK);
            }
        }
        let took = self.began.elapsed();
        let mut lanes = Vec::new();
        for lane in self.lanes {
            lanes.push(lane.end(&mut self.ends)?);
        }
        self.progress.end();
        Ok(Done {
            lanes,
            took,
            ping: self.pulse.p99(),
            running: running.into_iter().map(|running| running.count).collect(),
        })
    }

    /// Passes once through the places of all queues, and takes what workers have lost. Returns how many jobs went.
    fn pass(
        &mut self,
        peer: &dyn Peer,
        states: &[State],
        lost: &[Running],
    ) -> Result<u64, Failure> {
        let mut lost = lost.iter();
        let mut moved = 0;
        let settle = match self.args.follow {
            false => SETTLE,
            true => SETTLE_FOLLOWING,
        };
        let mut going = Going {
            settle,
            pulse: &mut self.pulse,
            progress: &mut self.progress,
            stop: &self.stop,
            rate: self.rate,
            began: self.began,
            gone: &mut self.gone,
        };
        for lane in &mut self.lanes {
            for place in lane.places(states) {
                moved += lane.pass(&mut self.ends, peer, &place, &mut going)?;
            }
            if let Some(running) = lost.next().filter(|_| !lane.is_paused) {
                moved += lane.take_lost(&mut self.ends, peer, running, &mut going)?;
            }
            lane.settle_in_time(&mut self.ends, &going)?;
        }
        Ok(moved)
    }

    /// Asks what the workers have, and renews the leases.
    fn running(&mut self, peer: &mut dyn Peer) -> Result<Vec<Running>, Failure> {
        let mut all = Vec::new();
        for lane in &mut self.lanes {
            lane.hold(&mut self.ends)?;
            let running = peer
                .running(&mut self.ends.source, &lane.names.queue)
                .map_err(at_source)?;
            lane.lost.clone_from(&running.lost);
            all.push(running);
        }
        Ok(all)
    }

    /// Counts what is left.
    fn count(&mut self) -> Result<(), Failure> {
        let mut left = 0;
        for lane in &self.lanes {
            left += lane.left(&mut self.ends)?;
        }
        self.progress.left(left);
        Ok(())
    }
}
