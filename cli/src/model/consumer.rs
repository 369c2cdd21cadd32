//! Consumers that have given a name.

use super::record::Record;
use crate::failure::Failure;
use crate::server::{verb, Server};

/// A named consumer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Consumer {
    /// Its name, printable.
    pub name: String,
    /// Number of its leases.
    pub running: u64,
    /// Number of messages that were delivered to it.
    pub delivered: u64,
    /// Number of messages that it has acked.
    pub acked: u64,
    /// Number of messages that it has nacked.
    pub nacked: u64,
    /// When it last ran a command, by the queue's clock.
    pub last_seen: Option<u64>,
}

impl Consumer {
    fn of(record: &Record) -> Consumer {
        Consumer {
            name: record.text("name"),
            running: record.count("running"),
            delivered: record.count("delivered"),
            acked: record.count("acked"),
            nacked: record.count("nacked"),
            last_seen: record.number("last-seen"),
        }
    }
}

/// Fetches the consumers of a queue. There are none for a user who may not see them.
pub fn fetch(server: &mut Server, queue: &[u8]) -> Result<Vec<Consumer>, Failure> {
    match server.call(&verb("DQ.CONSUMERS", queue)) {
        Ok(reply) => Ok(Record::all(reply)?.iter().map(Consumer::of).collect()),
        Err(Failure::Refused(_)) => Ok(Vec::new()),
        Err(failure) => Err(failure),
    }
}
