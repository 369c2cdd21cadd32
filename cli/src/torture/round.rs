//! One round: servers of its own, actors, one fault again and again, the end, and the verdict.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;

use super::actors::{consume, produce, QUEUE, RETRIES};
use super::fault::Fault;
use super::history::{End, History, Journal};
use super::link::Place;
use super::node::{Disk, Node, SmallDisk};
use super::rules::{check, Violation};
use crate::command::server::Programs;
use crate::failure::Failure;
use crate::model::record::Record;
use crate::server::{verb, Server};
use crate::takeover::Stop;

const PRODUCERS: usize = 3;
const CONSUMERS: usize = 4;
/// The states in which a message may be at the end.
const STATES: [&str; 9] = [
    "delayed",
    "ready",
    "blocked",
    "retry",
    "running",
    "held",
    "finished",
    "dead",
    "cancelled",
];
/// Under `appendfsync everysec`, everything is on the disk after this time.
const SYNCED: Duration = Duration::from_millis(2500);
/// Records are kept for longer than any round, in ms.
const FAR: u64 = 1 << 50;

/// The findings of a round.
pub struct Outcome {
    /// Its history.
    pub history: History,
    /// How often the fault was done.
    pub injected: usize,
    /// The promises that were broken.
    pub violations: Vec<Violation>,
    /// The work of the disk.
    pub disk: Disk,
    /// The version of the server.
    pub version: String,
}

/// Does one fault again and again for this time.
pub fn run(
    fault: Fault,
    programs: &Programs,
    folder: &Path,
    time: Duration,
    seed: u64,
    stop: &Stop,
) -> Result<Outcome, Failure> {
    let mut rng = Rng::with_seed(seed);
    std::fs::create_dir(folder)?;
    // The disk goes after the servers that write to it.
    let disk = match fault {
        Fault::DiskFull => Some(SmallDisk::mount(folder)?),
        _ => None,
    };
    let mut nodes = vec![Node::new(
        programs,
        folder.join("one"),
        fault.appendfsync(),
        fault.watches(),
    )?];
    if fault == Fault::Failover {
        nodes.push(Node::new(
            programs,
            folder.join("other"),
            fault.appendfsync(),
            false,
        )?);
    }
    let mut primary = None;
    for node in &mut nodes {
        node.start(primary)?;
        primary = primary.or(Some(node.port));
    }
    if let [_, replica] = nodes.as_slice() {
        replica.wait_for("replication", "master_link_status", "up")?;
    }
    let version = create(&nodes[0], fault)?;
    let place = Place::new(nodes[0].port, fault == Fault::Failover);
    let journal = Journal::begin();
    let mut injected = 0;
    thread::scope(|scope| {
        let (place, journal) = (&place, &journal);
        for n in 0..PRODUCERS {
            let rng = rng.fork();
            scope.spawn(move || produce(place, journal, &format!("p{n}"), rng));
        }
        for n in 0..CONSUMERS {
            let rng = rng.fork();
            scope.spawn(move || consume(place, journal, &format!("c{n}"), rng));
        }
        let begin = Instant::now();
        let result = (|| {
            while begin.elapsed() < time && !stop.is_asked() {
                stop.sleep(fault.pause(&mut rng));
                if !stop.is_asked() {
                    fault.inject(&mut nodes, disk.as_ref(), place, journal, &mut rng)?;
                    injected += 1;
                }
            }
            Ok::<(), Failure>(())
        })();
        place.healed.store(true, Ordering::Relaxed);
        if result.is_err() || stop.is_asked() {
            place.over.store(true, Ordering::Relaxed);
        }
        result
    })?;
    let mut history = std::mem::take(&mut *journal.open());
    let Some(node) = nodes.iter_mut().find(|node| node.port == place.port()) else {
        return Err(Failure::mistake("the queue is nowhere"));
    };
    let violations = match stop.is_asked() {
        // A queue that is not drained cannot be judged.
        true => Vec::new(),
        false => {
            history.ends = ends(&mut node.connect()?)?;
            crash_once_more(node, fault, &mut history)?;
            check(&history)
        }
    };
    let mut total = Disk::default();
    for node in &mut nodes {
        node.kill();
        total.add(&mut node.disk);
    }
    Ok(Outcome {
        history,
        injected,
        violations,
        disk: total,
        version,
    })
}

/// Makes the queue, so that the first failure does not take it. Returns the name and version of the server.
fn create(node: &Node, fault: Fault) -> Result<String, Failure> {
    node.set("appendfsync", "always")?;
    let mut cmd = verb("DQ.CREATE", QUEUE);
    cmd.arg("RETRIES")
        .arg(RETRIES)
        .arg("RETAIN")
        .arg(FAR)
        .arg("RETAINCOUNT")
        .arg(0);
    cmd.arg(&["BACKOFF", "FIXED", "20"]);
    node.connect()?.call(&cmd)?;
    node.set("appendfsync", fault.appendfsync())?;
    let valkey = node.info("server", "valkey_version")?;
    let redis = node.info("server", "redis_version")?;
    let dq = node.info("dq", "dq_version")?;
    let engine = match valkey.is_empty() {
        true => format!("Redis {redis}"),
        false => format!("Valkey {valkey}"),
    };
    Ok(format!("{engine} with dq {dq}"))
}

/// All messages have ended: a crash and the log change nothing of that.
fn crash_once_more(node: &mut Node, fault: Fault, history: &mut History) -> Result<(), Failure> {
    if fault.appendfsync() != "always" {
        thread::sleep(SYNCED);
    }
    node.kill();
    node.start(None)?;
    let after = ends(&mut node.connect()?)?;
    let before = &history.ends;
    let states = before
        .iter()
        .map(|(id, end)| (id, after.get(id).map(|end| &end.state), &end.state));
    let changed: Vec<String> = states
        .filter(|(_, after, before)| *after != Some(before))
        .map(|(id, after, before)| {
            let after = after.map_or("gone", String::as_str);
            format!("{id} was {before} before the last crash and is {after} after it")
        })
        .collect();
    history.differences.extend(changed);
    Ok(())
}

/// Reads how each message has ended.
fn ends(server: &mut Server) -> Result<std::collections::BTreeMap<String, End>, Failure> {
    let mut found = std::collections::BTreeMap::new();
    for state in STATES {
        let mut cursor = Some(b"0".to_vec());
        while let Some(from) = cursor {
            let mut cmd = verb("DQ.LIST", QUEUE);
            cmd.arg(state)
                .arg("CURSOR")
                .arg(from)
                .arg("COUNT")
                .arg(1000);
            let (next, records) = Record::page(server.call(&cmd)?)?;
            for record in records {
                let end = End {
                    state: state.to_owned(),
                    failures: record.count("failures"),
                    reason: record.text("reason"),
                };
                found.insert(record.text("id"), end);
            }
            cursor = next;
        }
    }
    Ok(found)
}
