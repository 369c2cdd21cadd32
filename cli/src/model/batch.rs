//! Batches that are open.

use super::listing;
use super::record::Record;
use crate::failure::Failure;
use crate::server::Server;

/// An open batch at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// Its name.
    pub name: Vec<u8>,
    /// Messages of it that are pending.
    pub pending: u64,
    /// Messages of it that run.
    pub running: u64,
    /// Dead messages of the batch, which hold the messages that wait for it.
    pub dead: u64,
    /// Messages of it that were finished since it was opened.
    pub finished: u64,
    /// Messages of it that were cancelled since it was opened.
    pub cancelled: u64,
    /// Messages that wait for it.
    pub held: u64,
}

impl Batch {
    /// Reads a record of DQ.BATCHES.
    pub fn of(record: &Record) -> Batch {
        Batch {
            name: record.bytes("batch").unwrap_or_default().to_vec(),
            pending: record.count("pending"),
            running: record.count("running"),
            dead: record.count("dead"),
            finished: record.count("finished"),
            cancelled: record.count("cancelled"),
            held: record.count("held"),
        }
    }

    /// Returns whether nothing but dead messages keeps it open.
    pub fn is_only_dead(&self) -> bool {
        self.pending + self.running == 0 && self.dead > 0
    }

    /// Returns how many of its messages have ended, and how many there were.
    pub fn progress(&self) -> (u64, u64) {
        let ended = self.finished + self.cancelled;
        (ended, ended + self.pending + self.running + self.dead)
    }
}

/// Fetches up to `most` open batches of a queue, in one call. Returns whether there are
/// more.
pub fn fetch(
    server: &mut Server,
    queue: &[u8],
    most: usize,
) -> Result<(Vec<Batch>, bool), Failure> {
    let (records, more) = listing::first(server, "DQ.BATCHES", queue, most as u64)?;
    Ok((records.iter().map(Batch::of).collect(), more))
}

#[cfg(test)]
mod tests {
    use redis::Value;

    use super::*;
    use crate::model::record::record;

    #[test]
    fn the_progress_counts_what_has_ended() {
        let batch = Batch::of(&record(&[
            ("batch", Value::BulkString(b"album".to_vec())),
            ("pending", Value::Int(3)),
            ("running", Value::Int(1)),
            ("dead", Value::Int(2)),
            ("finished", Value::Int(10)),
            ("cancelled", Value::Int(4)),
            ("held", Value::Int(1)),
        ]));
        assert_eq!(batch.name, b"album");
        assert_eq!(batch.progress(), (14, 20));
    }
}
