//! How long messages of each type have run, from the records of finished ones.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::queue::Queue;
use super::record::Record;
use crate::failure::Failure;
use crate::server::{verb, Server};
use crate::time_text::Millis;

/// Maximum number of records that are looked at.
const MOST: usize = 2000;

/// Number of records of one step. Their payloads come with them.
const STEP: usize = 100;

/// Payload bytes that one step should bring at most.
const STEP_BYTES: usize = 1 << 20;

/// Maximum time for which records are looked at.
const PATIENCE: Duration = Duration::from_millis(1500);

/// Number of the newest records of a queue whose run times are kept at a time.
const NEWEST: usize = 25;

/// A message that has ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Run {
    /// Its type. Empty if it has none.
    pub kind: Vec<u8>,
    /// When it ended, by the clock of its queue.
    pub ended: Millis,
    /// The time of its last attempt in ms.
    pub took: Millis,
}

impl Run {
    fn of(record: &Record) -> Option<Run> {
        let (from, to) = (record.number("started-at")?, record.number("finished-at")?);
        Some(Run {
            kind: record.bytes("type").unwrap_or_default().to_vec(),
            ended: to,
            took: to.saturating_sub(from),
        })
    }
}

/// Returns the newest messages of a queue that have ended within a time.
pub fn newest(server: &mut Server, queue: &Queue, within: Millis) -> Result<Vec<Run>, Failure> {
    let after = queue.now.saturating_sub(within);
    let mut runs = Vec::new();
    let mut cursor: Option<Vec<u8>> = None;
    // Payloads come with the records, and the first one shows how many may be asked for.
    let mut count = 1;
    for _ in 0..2 {
        let mut cmd = verb("DQ.LIST", &queue.name);
        cmd.arg("finished").arg("REV").arg("COUNT").arg(count);
        if let Some(cursor) = &cursor {
            cmd.arg("CURSOR").arg(cursor.as_slice());
        }
        let (next, records) = match server.call(&cmd) {
            // A visitor who may not see messages has no run times.
            Err(Failure::Refused(_)) => break,
            reply => Record::page(reply?)?,
        };
        let found = records.iter().filter_map(Run::of);
        runs.extend(found.filter(|run| run.ended >= after));
        let bytes = records.last().and_then(|last| last.bytes("payload"));
        count = (STEP_BYTES / (bytes.map_or(0, <[u8]>::len) + 1)).min(NEWEST - 1);
        if runs.is_empty() || next.is_none() || count == 0 {
            break;
        }
        cursor = next;
    }
    Ok(runs)
}

/// The run times of one type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunTimes {
    /// The type. Empty for messages without one.
    pub kind: Vec<u8>,
    /// The run times, in ms, the shortest first.
    times: Vec<Millis>,
    /// Deliveries before the last one.
    pub repeats: u64,
}

impl RunTimes {
    /// Returns the number of messages.
    pub fn count(&self) -> usize {
        self.times.len()
    }

    /// Returns the time that this percentage of the messages did not exceed.
    pub fn percentile(&self, percent: usize) -> Millis {
        let last = self.times.len().saturating_sub(1);
        self.times.get(last * percent / 100).copied().unwrap_or(0)
    }

    /// Returns the sum of all run times.
    pub fn sum(&self) -> Millis {
        self.times.iter().copied().fold(0, Millis::saturating_add)
    }
}

/// Looks at the newest records of finished messages, for a limited time. Returns the types,
/// the one that took most time in all first, and when the oldest record ended.
pub fn fetch(
    server: &mut Server,
    queue: &[u8],
) -> Result<(Vec<RunTimes>, Option<Millis>), Failure> {
    let begun = Instant::now();
    let mut types: BTreeMap<Vec<u8>, RunTimes> = BTreeMap::new();
    let (mut looked, mut step, mut oldest) = (0, STEP / 4, None);
    let mut cursor: Option<Vec<u8>> = None;
    while looked < MOST && begun.elapsed() < PATIENCE {
        let mut cmd = verb("DQ.LIST", queue);
        cmd.arg("finished").arg("REV").arg("COUNT").arg(step);
        if let Some(cursor) = &cursor {
            cmd.arg("CURSOR").arg(cursor.as_slice());
        }
        let (next, records) = Record::page(server.call(&cmd)?)?;
        let mut bytes = 0;
        for record in &records {
            bytes += record.bytes("payload").map_or(0, <[u8]>::len);
            add(&mut types, record);
            oldest = record.number("finished-at").or(oldest);
        }
        looked += records.len();
        step = (STEP_BYTES / (bytes / records.len().max(1) + 1)).clamp(1, STEP);
        match next {
            Some(next) => cursor = Some(next),
            None => break,
        }
    }
    let mut types: Vec<RunTimes> = types.into_values().collect();
    for one in &mut types {
        one.times.sort_unstable();
    }
    types.sort_by_key(|one| std::cmp::Reverse(one.sum()));
    Ok((types, oldest))
}

fn add(types: &mut BTreeMap<Vec<u8>, RunTimes>, record: &Record) {
    let Some(run) = Run::of(record) else {
        return;
    };
    let one = types.entry(run.kind.clone()).or_default();
    one.kind = run.kind;
    one.times.push(run.took);
    one.repeats += record.count("attempt").saturating_sub(1);
}

#[cfg(test)]
mod tests {
    use redis::Value;

    use super::*;
    use crate::model::record::record;

    #[test]
    fn times_are_of_the_last_attempt_by_type() {
        let mut types = BTreeMap::new();
        for (kind, took, attempt) in [("a", 10, 1), ("a", 30, 3), ("a", 20, 1), ("", 5, 1)] {
            let kind = Value::BulkString(kind.as_bytes().to_vec());
            add(
                &mut types,
                &record(&[
                    ("type", kind),
                    ("started-at", Value::Int(100)),
                    ("finished-at", Value::Int(100 + took)),
                    ("attempt", Value::Int(attempt)),
                ]),
            );
        }
        let a = types.get_mut(&b"a"[..]).unwrap();
        a.times.sort_unstable();
        assert_eq!((a.count(), a.repeats, a.sum()), (3, 2, 60));
        assert_eq!((a.percentile(50), a.percentile(100)), (20, 30));
        assert_eq!(types[&Vec::new()].count(), 1);
        assert_eq!(RunTimes::default().percentile(50), 0);
    }
}
