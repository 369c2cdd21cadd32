//! Both ends of an import: the connections, the ledger, and the scripts.

use std::time::{Duration, Instant};

use redis::{Cmd, Value};

use super::ledger::Ledger;
use super::peer::{Peer, Place, Words};
use super::read::{info, text, texts};
use super::record::{Bytes, Record};
use crate::failure::Failure;
use crate::model::record::unexpected;
use crate::server::Server;

/// The most jobs of one script: while it runs, its server does nothing else.
pub const SCRIPT: usize = 50;

/// The longest wait for the disk of the target, ms.
const DISK: u64 = 10_000;

/// The most claimed jobs that are sent and not deleted.
const WINDOW: usize = 20_000;

/// A script that a server knows by its hash.
#[derive(Debug, Clone, Default)]
pub struct Script {
    source: String,
    hash: Bytes,
}

impl Script {
    /// Creates a script of these parts. It has to be loaded before it is called.
    pub fn new(parts: &[&str]) -> Script {
        Script {
            source: parts.concat(),
            hash: Bytes::new(),
        }
    }

    /// Loads it.
    pub fn load(&mut self, server: &mut Server) -> Result<(), Failure> {
        let mut cmd = redis::cmd("SCRIPT");
        cmd.arg("LOAD").arg(&self.source);
        self.hash = text(server.call(&cmd)?).ok_or_else(unexpected)?;
        Ok(())
    }

    /// Begins a call with these keys.
    pub fn call(&self, keys: &[&[u8]]) -> Cmd {
        let mut cmd = redis::cmd("EVALSHA");
        cmd.arg(&self.hash).arg(keys.len()).arg(keys);
        cmd
    }
}

/// The question of a claim: how many jobs are passed over, how many are claimed at most, and the time of the source.
#[derive(Debug, Clone, Copy)]
pub struct Want {
    /// The jobs of the place that are passed over.
    pub offset: u64,
    /// The most jobs.
    pub count: usize,
    /// Unix ms.
    pub now: u64,
}

/// Begins a call of a peer's script on a place: `take` claims for the holder of the lease, `peek` only reads.
pub fn claim(
    script: &Script,
    keys: &Keys,
    place: &Place,
    mode: &str,
    token: &str,
    want: Want,
) -> Cmd {
    let mut cmd = script.call(&[
        &keys.claim,
        &keys.state,
        &keys.lease,
        &place.key,
        &keys.stem,
    ]);
    cmd.arg(token).arg(mode).arg(want.offset).arg(want.count);
    cmd.arg(&place.name)
        .arg(want.now)
        .arg(place.kind)
        .arg(&place.words);
    cmd
}

/// The keys of an import at both ends.
#[derive(Debug, Clone)]
pub struct Keys {
    /// The list of the jobs that are claimed and not yet deleted.
    pub claim: Bytes,
    /// A hash with the id of the run and the number of its last job.
    pub state: Bytes,
    /// The lease, which names the ledger.
    pub lease: Bytes,
    /// The claimed jobs that stay, until they are put back.
    pub stays: Bytes,
    /// The jobs that could not be put back, because their ids are in use again.
    pub conflicts: Bytes,
    /// How far an undo has come.
    pub undone: Bytes,
    /// The beginning of the keys of the queue.
    pub stem: Bytes,
}

impl Keys {
    /// Returns the keys beside those of a queue.
    pub fn of(stem: Bytes) -> Keys {
        let beside = |name: &str| [stem.as_slice(), b":dq:", name.as_bytes()].concat();
        Keys {
            claim: beside("claim"),
            state: beside("import"),
            lease: beside("lease"),
            stays: beside("stays"),
            conflicts: beside("conflicts"),
            undone: beside("undone"),
            stem,
        }
    }
}

/// Returns a key of the import `id` in the slot of the queue `key`.
pub fn at_target(key: &[u8], what: &str, id: &str) -> String {
    let name = String::from_utf8_lossy(key);
    let tag = name
        .split_once('{')
        .and_then(|(_, rest)| rest.split_once('}'));
    let tag = tag.map(|(tag, _)| tag).filter(|tag| !tag.is_empty());
    format!("dq:{what}:{{{}}}:{id}", tag.unwrap_or(&name))
}

/// Both ends.
pub struct Ends {
    /// The server of the peer.
    pub source: Server,
    /// The server with dq.
    pub target: Server,
    /// The ledger.
    pub ledger: Ledger,
    /// The scripts: claims and their return, the end of a batch, the lease, sending, and what takes messages out again.
    pub peer: Script,
    settle: Script,
    lease: Script,
    send: Script,
    back: Script,
    /// Whether the target says when its disk has what it was sent.
    waits_for_disk: bool,
}

/// The outcome of a batch at the target.
#[derive(Debug, Default)]
pub struct Sent {
    /// The number of the last job that is there.
    pub last: u64,
    /// Why it went no further, in the server's words.
    pub refused: String,
    /// The numbers of jobs whose id belongs to another message.
    pub taken: Vec<u64>,
}

impl Ends {
    /// Makes the scripts known.
    pub fn new(
        source: Server,
        target: Server,
        ledger: Ledger,
        peer: &dyn Peer,
    ) -> Result<Ends, Failure> {
        let mut ends = Ends {
            source,
            target,
            ledger,
            peer: Script::new(&[&peer.row().script()]),
            settle: Script::new(&[include_str!("lua/settle.lua")]),
            lease: Script::new(&[include_str!("lua/lease.lua")]),
            send: Script::new(&[include_str!("lua/send.lua")]),
            back: Script::new(&[include_str!("lua/purge.lua"), include_str!("lua/back.lua")]),
            waits_for_disk: false,
        };
        for script in [&mut ends.peer, &mut ends.settle, &mut ends.lease] {
            script.load(&mut ends.source).map_err(at_source)?;
        }
        for script in [&mut ends.send, &mut ends.back] {
            script.load(&mut ends.target).map_err(at_target_end)?;
        }
        let is_on = info(&mut ends.target, "persistence", "aof_enabled");
        ends.waits_for_disk = is_on.as_deref() == Some("1") && ends.disk()?;
        Ok(ends)
    }

    /// Returns whether the target says when its disk has everything.
    pub fn waits_for_disk(&self) -> bool {
        self.waits_for_disk
    }

    /// Waits until the disk of the target has what it was sent. Returns whether it can say so.
    fn disk(&mut self) -> Result<bool, Failure> {
        let mut cmd = redis::cmd("WAITAOF");
        cmd.arg(1).arg(0).arg(DISK);
        for node in 0..self.target.nodes().len().max(1) {
            match self.target.call_on(node, &cmd) {
                Ok(Value::Array(counts)) if counts.first() == Some(&Value::Int(1)) => {}
                Ok(Value::Array(_)) => {
                    let words = "TARGET: its disk does not get what it was sent";
                    return Err(Failure::mistake(words));
                }
                Ok(_) | Err(Failure::Refused(_)) => return Ok(false),
                Err(failure) => return Err(at_target_end(failure)),
            }
        }
        Ok(true)
    }

    /// Takes or renews the lease. Fails with BUSY if another ledger has it.
    pub fn hold(&mut self, keys: &Keys, token: &str) -> Result<(), Failure> {
        let mut cmd = self.lease.call(&[&keys.lease]);
        cmd.arg(token);
        let held = text(self.source.call(&cmd).map_err(at_source)?).unwrap_or_default();
        match held.is_empty() {
            true => Ok(()),
            false => Err(Failure::mistake(format!(
                "BUSY another import has this queue, with the ledger {}",
                String::from_utf8_lossy(&held)
                    .split(' ')
                    .nth(1)
                    .unwrap_or_default()
            ))),
        }
    }

    /// Sends jobs. Numbers up to the marker are passed over, so a call may be repeated.
    pub fn send(
        &mut self,
        key: &[u8],
        marker: &str,
        jobs: &[(u64, Vec<Words>)],
    ) -> Result<Sent, Failure> {
        send(&mut self.target, &self.send, key, marker, jobs)
    }

    /// Takes the first `count` jobs off the claim list, once ledger and target have them on their disks.
    pub fn settle(
        &mut self,
        keys: &Keys,
        token: &str,
        count: usize,
        stays: &[Bytes],
    ) -> Result<(), Failure> {
        self.ledger.sync()?;
        if self.waits_for_disk {
            self.disk()?;
        }
        let mut cmd = self.settle.call(&[&keys.claim, &keys.stays, &keys.lease]);
        cmd.arg(token).arg(count).arg(stays);
        self.source.call(&cmd).map_err(at_source)?;
        Ok(())
    }

    /// Takes messages out of the queue that nobody has got. Each is given as its place in the undo, its id, and the commands
    /// that follow its going. Returns the places of those that went.
    pub fn take_back(
        &mut self,
        key: &[u8],
        list: &[u8],
        jobs: &[(usize, Bytes, Vec<Words>)],
    ) -> Result<Vec<usize>, Failure> {
        let mut cmd = self.back.call(&[key, list]);
        for (place, id, commands) in jobs {
            cmd.arg(*place).arg(id).arg(commands.len());
            for words in commands {
                cmd.arg(words.len()).arg(words);
            }
        }
        let gone = texts(self.target.call(&cmd).map_err(at_target_end)?).into_iter();
        Ok(gone
            .filter_map(|place| String::from_utf8(place).ok()?.parse().ok())
            .collect())
    }

    /// Puts records back, the last claimed first, and notes how far it has come. Returns the ids that are in use again.
    pub fn put_back(
        &mut self,
        keys: &Keys,
        records: &[Record],
        how: Back,
    ) -> Result<Vec<Bytes>, Failure> {
        let (list, count, word) = match how {
            Back::Stays => (&keys.stays, records.len() as u64, "trim"),
            Back::Undo(place) => (&keys.undone, place, "mark"),
        };
        let mut cmd = self.peer.call(&[list, &keys.stem, &keys.conflicts]);
        cmd.arg(count).arg(word);
        for record in records {
            cmd.arg(&record.packed);
        }
        Ok(texts(self.source.call(&cmd).map_err(at_source)?))
    }
}

/// The records that are put back: which, and why.
#[derive(Debug, Clone, Copy)]
pub enum Back {
    /// The end of the list of those that stay.
    Stays,
    /// The messages of an undo up to this place.
    Undo(u64),
}

/// Sends jobs by the script of `lua/send.lua`. Numbers up to the marker are passed over, so a call may be repeated.
pub fn send(
    target: &mut Server,
    script: &Script,
    key: &[u8],
    marker: &str,
    jobs: &[(u64, Vec<Words>)],
) -> Result<Sent, Failure> {
    let mut cmds = Vec::new();
    for part in jobs.chunks(SCRIPT) {
        let mut cmd = script.call(&[key, marker.as_bytes()]);
        for (number, commands) in part {
            cmd.arg(*number).arg(commands.len());
            for words in commands {
                cmd.arg(words.len()).arg(words);
            }
        }
        cmds.push(cmd);
    }
    let mut sent = Sent::default();
    for reply in target.pipeline(&cmds).map_err(at_target_end)? {
        let reply = match reply {
            Err(Failure::Refused(words)) if words.starts_with("OOM") => {
                sent.refused = words;
                break;
            }
            other => other.map_err(at_target_end)?,
        };
        let Value::Array(parts) = reply else {
            return Err(unexpected());
        };
        let [last, refused, taken] = <[Value; 3]>::try_from(parts).map_err(|_| unexpected())?;
        if let Value::Int(last) = last {
            sent.last = last as u64;
        }
        let number = |text: Bytes| String::from_utf8_lossy(&text).parse::<u64>().ok();
        sent.taken
            .extend(texts(taken).into_iter().filter_map(number));
        sent.refused = String::from_utf8_lossy(&text(refused).unwrap_or_default()).into_owned();
        if !sent.refused.is_empty() {
            break;
        }
    }
    Ok(sent)
}

/// Returns whether it is time to delete from a claim list.
pub fn is_time(window: usize, last: Instant, least: Duration) -> bool {
    window >= WINDOW || (window > 0 && last.elapsed() >= least)
}

/// Says that a failure came from the source.
pub fn at_source(failure: Failure) -> Failure {
    named("SOURCE", failure)
}

/// Says that a failure came from the target.
pub fn at_target_end(failure: Failure) -> Failure {
    named("TARGET", failure)
}

fn named(end: &str, failure: Failure) -> Failure {
    match failure {
        Failure::Lost(words) => Failure::Lost(format!("{end}: {words}")),
        Failure::Refused(words)
            if words.starts_with("WRONGTYPE") || words.contains("WRONGTYPE") =>
        {
            Failure::Refused(format!(
                "TYPE {end}: a key of the queue has another type: {words}"
            ))
        }
        Failure::Refused(words) => Failure::Refused(format!("{end}: {words}")),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_marker_is_in_the_slot_of_the_queue() {
        for (key, tag) in [
            ("bull:mails", "{bull:mails}"),
            ("{bull}:mails", "{bull}"),
            ("a{b}c{d}", "{b}"),
        ] {
            assert_eq!(
                at_target(key.as_bytes(), "import", "1"),
                format!("dq:import:{tag}:1")
            );
        }
    }
}
