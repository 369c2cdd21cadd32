//! Finding the queues of a database.

use std::time::{Duration, Instant};

use redis::Value;

use super::queue::Queue;
use super::record::{bytes, unexpected};
use crate::failure::Failure;
use crate::server::{verb, Server};

/// The name of the data type: what `TYPE key` prints.
const TYPE_NAME: &str = "dqueue-rs";

/// How many keys the server looks at in one step: well under a millisecond.
const STEP: u32 = 1000;

/// How many queues are asked in one round trip.
const CHUNK: usize = 500;

/// A walk through all keys, in steps, so that a database with very many other
/// keys delays nobody.
#[derive(Debug, Default)]
pub struct Scan {
    cursor: Vec<u8>,
    found: Vec<Vec<u8>>,
}

impl Scan {
    /// Goes on for `time`; the names of all queues, sorted, once all keys were
    /// seen, and the walk starts anew.
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

    /// The names found on the way, while the walk goes on.
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

/// All queues of the database whose names match, sorted.
pub fn all(server: &mut Server, pattern: Option<&str>) -> Result<Vec<Vec<u8>>, Failure> {
    let mut scan = Scan::default();
    loop {
        if let Some(names) = scan.step(server, pattern, Duration::MAX)? {
            return Ok(names);
        }
    }
}

/// DQ.INFO of each queue: its reply or error.
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

/// The figures of the queues that may be looked at. SCAN shows names that the
/// user has no right to, or that are gone by now: they are left out. Only
/// where nothing is left, a missing right is an error.
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
