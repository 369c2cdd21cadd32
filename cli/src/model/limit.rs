//! Limits with names.

use redis::Value;

use super::listing;
use super::queue::Queue;
use super::record::Record;
use crate::failure::Failure;
use crate::server::{verb, Server};
use crate::time_text::{exact, Millis};

/// Number of limits among which one is looked for.
const SOUGHT: usize = 10_000;

/// Number of limits of a queue among many that are looked at.
const LISTED: usize = 100;

/// How many deliveries may begin in any window, and how many have begun in the last one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rate {
    /// How many may begin.
    pub limit: u64,
    /// The length of the window.
    pub per: Millis,
    /// How many have begun.
    pub used: u64,
}

/// A limit at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Limit {
    /// Its name.
    pub name: Vec<u8>,
    /// The name or the pattern that was set for it. `None` if nothing limits this name.
    pub rule: Option<Vec<u8>>,
    /// How many messages, or what sum of their costs, may run at once. `None`: without limit.
    pub concurrency: Option<u64>,
    /// Whether `concurrency` and `rates` count costs.
    pub weighted: bool,
    /// Its windows.
    pub rates: Vec<Rate>,
    /// Messages that run.
    pub running: u64,
    /// The sum of the costs of these messages.
    pub running_cost: u64,
    /// Groups that wait for room under this limit.
    pub waiting: u64,
    /// When a message of cost 1 can begin. `None` if only the end of another one makes room.
    pub next_free: Option<Millis>,
    /// Whether the first that waits costs more than the limit ever allows.
    pub is_never: bool,
}

impl Limit {
    /// Reads a record of DQ.LIMITS.
    pub fn of(record: &Record) -> Limit {
        Limit {
            name: record.bytes("limit").unwrap_or_default().to_vec(),
            rule: record.bytes("rule").map(<[u8]>::to_vec),
            concurrency: record.number("concurrency").filter(|most| *most > 0),
            weighted: record.flag("weight") || record.count("weight") > 0,
            rates: rates(record.get("rates")),
            running: record.count("running"),
            running_cost: record.count("running-cost"),
            waiting: record.count("waiting"),
            next_free: record.number("next-free"),
            is_never: record.bytes("next-free") == Some(b"never"),
        }
    }

    /// Returns the rule as people write it: `RATE 1000 PER 1m CONCURRENCY 5 WEIGHT`.
    pub fn words(&self) -> String {
        let rates = self.rates.iter();
        let mut words: Vec<String> = rates
            .map(|rate| format!("RATE {} PER {}", rate.limit, exact(rate.per)))
            .collect();
        words.extend(self.concurrency.map(|most| format!("CONCURRENCY {most}")));
        words.extend(self.weighted.then(|| "WEIGHT".to_owned()));
        words.join(" ")
    }

    /// Returns how much runs, and how much may run: `3 of 5`.
    pub fn running_words(&self) -> String {
        let (used, unit) = match self.weighted {
            true => (self.running_cost, " (cost)"),
            false => (self.running, ""),
        };
        match self.concurrency {
            Some(most) => format!("{used} of {most}{unit}"),
            None => self.running.to_string(),
        }
    }

    /// Returns how much has begun in each window: `950 of 1000 in 1m`.
    pub fn rate_words(&self) -> String {
        let unit = if self.weighted { " (cost)" } else { "" };
        let words = self.rates.iter().map(|rate| {
            format!(
                "{} of {}{unit} in {}",
                rate.used,
                rate.limit,
                exact(rate.per)
            )
        });
        words.collect::<Vec<_>>().join(", ")
    }
}

fn rates(value: &Value) -> Vec<Rate> {
    let Value::Array(windows) = value else {
        return Vec::new();
    };
    let one = |window: &Value| {
        let Value::Array(parts) = window else {
            return None;
        };
        let number = |at: usize| match parts.get(at) {
            Some(Value::Int(n)) => u64::try_from(*n).ok(),
            _ => None,
        };
        Some(Rate {
            limit: number(0)?,
            per: number(1)?,
            used: number(2)?,
        })
    };
    windows.iter().filter_map(one).collect()
}

/// Fetches up to `most` limits of a queue, in one call. Returns whether there are more.
pub fn fetch(
    server: &mut Server,
    queue: &[u8],
    most: usize,
) -> Result<(Vec<Limit>, bool), Failure> {
    let (records, more) = listing::first(server, "DQ.LIMITS", queue, most as u64)?;
    Ok((records.iter().map(Limit::of).collect(), more))
}

/// Fetches limits of each queue that can make use of them, in one round trip.
pub fn of_queues(server: &mut Server, queues: &[Queue]) -> Result<Vec<Vec<Limit>>, Failure> {
    let pages = listing::of_queues(server, queues, |queue| {
        let mut cmd = verb("DQ.LIMITS", &queue.name);
        cmd.arg("COUNT").arg(LISTED);
        (queue.count("ready") + queue.count("running") > 0).then_some(cmd)
    })?;
    let read = |page: &Vec<Record>| page.iter().map(Limit::of).collect();
    Ok(pages.iter().map(read).collect())
}

/// Looks for the rule of this name. `None` if there is none, or there are too many limits.
pub fn find(server: &mut Server, queue: &[u8], name: &[u8]) -> Result<Option<Limit>, Failure> {
    let (found, _) = fetch(server, queue, SOUGHT)?;
    let is_rule = |one: &Limit| one.name == name && one.rule.as_deref() == Some(name);
    Ok(found.into_iter().find(is_rule))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::record::record;

    #[test]
    fn a_limit_is_read_and_said_in_words() {
        let window =
            |n: i64, per: i64, used: i64| Value::Array([n, per, used].map(Value::Int).to_vec());
        let limit = Limit::of(&record(&[
            ("limit", Value::BulkString(b"user-7".to_vec())),
            ("rule", Value::BulkString(b"user-*".to_vec())),
            ("concurrency", Value::Int(5)),
            ("weight", Value::Int(1)),
            (
                "rates",
                Value::Array(vec![window(1000, 60_000, 950), window(9, 1000, 1)]),
            ),
            ("running", Value::Int(2)),
            ("running-cost", Value::Int(4)),
            ("waiting", Value::Int(3)),
            ("next-free", Value::BulkString(b"never".to_vec())),
        ]));
        assert!(limit.is_never);
        let rule = "RATE 1000 PER 1m RATE 9 PER 1s CONCURRENCY 5 WEIGHT";
        assert_eq!(limit.words(), rule);
        assert_eq!(limit.rule.as_deref(), Some(&b"user-*"[..]));
        assert_eq!(limit.running_words(), "4 of 5 (cost)");
        assert_eq!(
            limit.rate_words(),
            "950 of 1000 (cost) in 1m, 1 of 9 (cost) in 1s"
        );
        assert_eq!(limit.next_free, None);
        assert_eq!(Limit::default().running_words(), "0");
    }
}
