//! Finds the queues of a database.

use std::time::{Duration, Instant};

use redis::{Cmd, Value};

use super::record::unexpected;
use crate::failure::Failure;
use crate::server::{verb, Server};
use crate::text::printable;

/// The name of the data type, as `TYPE key` replies it.
const TYPE_NAME: &str = "dqueue-rs";

/// Number of keys that the server scans in one step. With TYPE it opens each of them, which takes
/// some three microseconds a key where there are many queues.
const STEP: u32 = 250;

/// Number of queues of a server that are asked in one round trip. The server answers
/// all of them before it serves another client.
const CHUNK: usize = 32;

/// A scan of all keys of all servers in steps, so that a database with very many other
/// keys delays no client.
#[derive(Debug, Default)]
pub struct Scan {
    /// The number of the server that is scanned, and the number of servers at the beginning.
    node: usize,
    nodes: usize,
    cursor: Vec<u8>,
    found: Vec<Vec<u8>>,
}

impl Scan {
    /// Continues the scan for `time`. Once all keys were seen, it returns the sorted
    /// names of all queues, and the next call begins a new scan.
    pub fn step(
        &mut self,
        server: &mut Server,
        pattern: Option<&[u8]>,
        time: Duration,
    ) -> Result<Option<Vec<Vec<u8>>>, Failure> {
        let start = Instant::now();
        if self.nodes == 0 {
            self.nodes = server.look()?;
        }
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
            let page = redis::from_redis_value(server.call_on(self.node, &cmd)?);
            let (cursor, names): (_, Vec<Vec<u8>>) = page.map_err(|_| unexpected())?;
            let seen = names.into_iter().filter(|name| server.sees(name));
            self.found.extend(seen);
            self.cursor = cursor;
            if self.cursor == b"0" {
                self.cursor.clear();
                self.node += 1;
            }
            if self.node == self.nodes {
                let mut found = std::mem::take(self).found;
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

/// Returns the sorted names of all queues of the database that match.
pub fn all(server: &mut Server, pattern: Option<&[u8]>) -> Result<Vec<Vec<u8>>, Failure> {
    let mut scan = Scan::default();
    loop {
        if let Some(names) = scan.step(server, pattern, Duration::MAX)? {
            return Ok(names);
        }
    }
}

/// Returns whether an argument is a pattern, as of KEYS.
pub fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?', '['])
}

/// Returns the names of the queues that arguments name. An argument that is a pattern stands
/// for all queues that match it, unless there is a queue of exactly this name. A pattern that
/// no queue matches is an error.
pub fn named(server: &mut Server, given: &[String]) -> Result<Vec<Vec<u8>>, Failure> {
    let mut names = Vec::new();
    for name in given {
        let key = name.as_bytes();
        if !is_pattern(name) || must_exist(server, key).is_ok() {
            names.push(key.to_vec());
            continue;
        }
        let mut found = all(server, Some(key))?;
        if found.is_empty() {
            let name = printable(key);
            return Err(Failure::mistake(format!("{name}: no queue matches")));
        }
        names.append(&mut found);
    }
    Ok(names)
}

/// Returns the names, or the pattern, of the queues that a command line chooses for as long as the
/// program runs: some queues, one pattern, or all.
#[allow(clippy::type_complexity)]
pub fn chosen(
    given: &[String],
    pattern: Option<&str>,
) -> Result<(Vec<Vec<u8>>, Option<Vec<u8>>), Failure> {
    let bytes = |text: &str| text.as_bytes().to_vec();
    match given {
        [one] if is_pattern(one) => Ok((Vec::new(), Some(bytes(one)))),
        names if names.iter().any(|name| is_pattern(name)) => Err(Failure::mistake(
            "give one pattern, or names without the marks of a pattern",
        )),
        names => Ok((
            names.iter().map(|name| bytes(name)).collect(),
            pattern.map(bytes),
        )),
    }
}

/// Runs a command for each queue, for a limited time. Returns a reply or an error for each queue
/// that was asked in this time.
pub fn each(
    server: &mut Server,
    names: &[Vec<u8>],
    patience: Duration,
    cmd: impl Fn(&[u8]) -> Cmd,
) -> Result<Vec<Result<Value, Failure>>, Failure> {
    let begun = Instant::now();
    let mut replies = Vec::with_capacity(names.len());
    let chunk = CHUNK * server.nodes().len().max(1);
    for chunk in names.chunks(chunk) {
        let cmds: Vec<_> = chunk.iter().map(|name| cmd(name)).collect();
        replies.append(&mut server.pipeline(&cmds)?);
        if begun.elapsed() >= patience {
            break;
        }
    }
    Ok(replies)
}

/// Runs DQ.INFO for each queue. Returns a reply or an error for each.
pub fn infos(
    server: &mut Server,
    names: &[Vec<u8>],
) -> Result<Vec<Result<Value, Failure>>, Failure> {
    each(server, names, Duration::MAX, |name| verb("DQ.INFO", name))
}

/// Fails unless the queue exists. Several verbs would create it, or read a missing queue as
/// an empty one, and a mistyped name must not go unnoticed. There is no check if the user
/// has no right to do so.
pub fn must_exist(server: &mut Server, queue: &[u8]) -> Result<(), Failure> {
    match server.call(&verb("DQ.INFO", queue)) {
        Err(failure) if !failure.is_forbidden() => Err(failure),
        _ => Ok(()),
    }
}
