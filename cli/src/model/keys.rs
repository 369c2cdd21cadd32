//! Finds the queues of a database.

use std::time::{Duration, Instant};

use redis::Value;

use super::queue::Queue;
use super::record::{bytes, unexpected};
use crate::failure::Failure;
use crate::server::{verb, Server};

/// The name of the data type, as `TYPE key` replies it.
const TYPE_NAME: &str = "dqueue-rs";

/// Number of keys that the server scans in one step, which takes well under a millisecond.
const STEP: u32 = 1000;

/// Number of queues that are asked in one round trip.
const CHUNK: usize = 500;

/// A scan of all keys in steps, so that a database with very many other keys delays
/// no client.
#[derive(Debug, Default)]
pub struct Scan {
    cursor: Vec<u8>,
    found: Vec<Vec<u8>>,
}

impl Scan {
    /// Goes on with the scan for `time`. Once all keys were seen, it returns the sorted
    /// names of all queues, and the next call begins a new scan.
    pub fn step(
        &mut self,
        server: &mut Server,
        pattern: Option<&str>,
        time: Duration,
    ) -> Result<Option<Vec<Vec<u8>>>, Failure> {
        let start = Instant::now();
        loop {
            let mut cmd = redis::cmd("SCAN");
            match self.cursor.is_empty() {
                true => cmd.arg(0),
                false => cmd.arg(self.cursor.as_slice()),
            };
            cmd.arg("TYPE").arg(TYPE_NAME).arg("COUNT").arg(STEP);
            if let Some(pattern) = pattern {
                cmd.arg("MATCH").arg(pattern);
            }
            let (cursor, mut names) = page(server.call(&cmd)?)?;
            self.found.append(&mut names);
            self.cursor = cursor;
            if self.cursor == b"0" {
                self.cursor.clear();
                let mut found = std::mem::take(&mut self.found);
                // SCAN may name a key twice.
                found.sort();
                found.dedup();
                return Ok(Some(found));
            }
            if start.elapsed() >= time {
                return Ok(None);
            }
        }
    }

    /// Returns the names that the current scan has found so far.
    pub fn so_far(&self) -> &[Vec<u8>] {
        &self.found
    }
}

fn page(reply: Value) -> Result<(Vec<u8>, Vec<Vec<u8>>), Failure> {
    let Value::Array(parts) = reply else {
        return Err(unexpected());
    };
    match <[Value; 2]>::try_from(parts) {
        Ok([cursor, Value::Array(names)]) => {
            let names = names
                .iter()
                .filter_map(|name| bytes(name).map(<[u8]>::to_vec));
            Ok((
                bytes(&cursor).ok_or_else(unexpected)?.to_vec(),
                names.collect(),
            ))
        }
        _ => Err(unexpected()),
    }
}

/// Returns the sorted names of all queues of the database that match.
pub fn all(server: &mut Server, pattern: Option<&str>) -> Result<Vec<Vec<u8>>, Failure> {
    let mut scan = Scan::default();
    loop {
        if let Some(names) = scan.step(server, pattern, Duration::MAX)? {
            return Ok(names);
        }
    }
}

/// Runs DQ.INFO for each queue. Returns a reply or an error for each.
pub fn infos(
    server: &mut Server,
    names: &[Vec<u8>],
) -> Result<Vec<Result<Value, Failure>>, Failure> {
    let mut replies = Vec::with_capacity(names.len());
    for chunk in names.chunks(CHUNK) {
        let cmds: Vec<_> = chunk.iter().map(|name| verb("DQ.INFO", name)).collect();
        replies.append(&mut server.pipeline(&cmds)?);
    }
    Ok(replies)
}

/// Fetches the figures of the queues. SCAN also returns queues that the user has no
/// right to read or that are gone by now, and these are left out. A missing right is
/// an error only if no queue is left.
pub fn fetch(server: &mut Server, names: &[Vec<u8>]) -> Result<Vec<Queue>, Failure> {
    let mut queues = Vec::with_capacity(names.len());
    let mut forbidden = None;
    for (name, reply) in names.iter().zip(infos(server, names)?) {
        match reply {
            Ok(info) => queues.push(Queue::of(name, info)?),
            Err(failure) if failure.is_forbidden() => forbidden = Some(failure),
            Err(_) => {}
        }
    }
    match forbidden {
        Some(failure) if queues.is_empty() => Err(failure),
        _ => Ok(queues),
    }
}
