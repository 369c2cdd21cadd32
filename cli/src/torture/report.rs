//! The report: what was done, what the storage kept, and which promises hold.

use std::time::Duration;

use serde_json::json;

use super::fault::Fault;
use super::history::{Answer, Ms};
use super::node::Disk;
use super::round::Outcome;
use crate::failure::Failure;
use crate::output::Output;
use crate::table::Table;

/// How many violations are shown with their history. What breaks one promise often breaks it a thousand times.
const SHOWN: usize = 10;

/// The sums of all rounds of a fault.
struct Row {
    fault: Fault,
    rounds: usize,
    operations: usize,
    confirmed: usize,
    injected: usize,
    gone: usize,
    oldest: Ms,
    violations: usize,
}

/// The report of a run, while it grows.
#[derive(Default)]
pub struct Report {
    rows: Vec<Row>,
    disk: Disk,
    violations: Vec<(Fault, String, Vec<String>)>,
    left_out: Vec<String>,
    /// The version of the server, once it is known.
    pub version: String,
}

impl Report {
    /// Adds a round.
    pub fn add(&mut self, fault: Fault, mut outcome: Outcome) {
        let row = match self.rows.iter_mut().find(|row| row.fault == fault) {
            Some(row) => row,
            None => {
                let row = Row {
                    fault,
                    rounds: 0,
                    operations: 0,
                    confirmed: 0,
                    injected: 0,
                    gone: 0,
                    oldest: 0.0,
                    violations: 0,
                };
                self.rows.push(row);
                let last = self.rows.len() - 1;
                &mut self.rows[last]
            }
        };
        let history = &outcome.history;
        let gone = history.gone();
        row.rounds += 1;
        row.operations += history.operations();
        row.confirmed += history
            .sends
            .iter()
            .filter(|s| s.answer == Answer::Done)
            .count();
        row.injected += outcome.injected;
        row.gone += gone.len();
        row.oldest = gone.iter().map(|(_, age)| *age).fold(row.oldest, Ms::max);
        row.violations += outcome.violations.len();
        for violation in &outcome.violations {
            let lines = history.lines(Some(&violation.ids));
            let words = format!("{}: {}", violation.rule, violation.words);
            self.violations.push((fault, words, lines));
        }
        self.disk.add(&mut outcome.disk);
        self.version = outcome.version;
    }

    /// Notes a fault that could not be done, and why.
    pub fn leave_out(&mut self, fault: Fault, why: &Failure) {
        self.left_out.push(format!("{}: {why}", fault.name()));
    }

    /// Returns how many promises were broken.
    pub fn violations(&self) -> usize {
        self.violations.len()
    }

    /// Prints the report.
    pub fn print(&mut self, out: &mut Output, seed: u64) -> Result<(), Failure> {
        self.disk.syncs.sort_unstable();
        if out.json {
            return self.print_json(out, seed);
        }
        let mut table = Table::new(&[
            "FAULT", "ROUNDS", "DONE", "CALLS", "SENDS", "GONE", "OLDEST", "BROKEN", "PROMISE",
        ]);
        for row in &self.rows {
            let oldest = match row.gone {
                0 => "-".to_owned(),
                _ => format!("{:.2}s", row.oldest / 1000.0),
            };
            table.row(vec![
                row.fault.name().to_owned(),
                row.rounds.to_string(),
                row.injected.to_string(),
                row.operations.to_string(),
                row.confirmed.to_string(),
                row.gone.to_string(),
                oldest,
                row.violations.to_string(),
                row.fault.promise().to_owned(),
            ]);
        }
        out.table(&table, "no round was done")?;
        out.line("")?;
        if !self.disk.syncs.is_empty() {
            out.line(&format!(
                "the disk    {} syncs, half of them within {}, 99 of 100 within {}",
                self.disk.syncs.len(),
                ms(self.disk.percentile(50)),
                ms(self.disk.percentile(99)),
            ))?;
            out.line(&format!(
                "power       {} bytes were written and not synced when it failed, {} of them were cut off",
                self.disk.unsynced, self.disk.cut
            ))?;
        }
        for words in &self.left_out {
            out.line(&format!("left out    {words}"))?;
        }
        for (fault, words, lines) in self.violations.iter().take(SHOWN) {
            out.line(&format!("broken      {} {words}", fault.name()))?;
            for line in lines {
                out.line(&format!("  {line}"))?;
            }
        }
        let count = self.violations.len();
        if count > SHOWN {
            out.line(&format!("broken      ... and {} times more", count - SHOWN))?;
        }
        match self.rows.is_empty() {
            true => out.line("nothing was judged"),
            false => out.line(&format!(
                "{count} violations: {}, seed {seed}",
                self.version
            )),
        }
    }

    fn print_json(&self, out: &mut Output, seed: u64) -> Result<(), Failure> {
        let rows = self.rows.iter().map(|row| {
            json!({
                "fault": row.fault.name(), "rounds": row.rounds, "injected": row.injected,
                "operations": row.operations, "sends": row.confirmed, "gone": row.gone,
                "oldest-gone-ms": row.oldest, "violations": row.violations,
            })
        });
        let broken = self.violations.iter().map(|(fault, words, lines)| {
            json!({ "fault": fault.name(), "what": words, "history": lines })
        });
        out.json(&json!({
            "server": self.version, "seed": seed, "faults": rows.collect::<Vec<_>>(),
            "syncs": self.disk.syncs.len(),
            "sync-p50-ms": self.disk.percentile(50).as_secs_f64() * 1000.0,
            "sync-p99-ms": self.disk.percentile(99).as_secs_f64() * 1000.0,
            "unsynced-bytes": self.disk.unsynced, "cut-bytes": self.disk.cut,
            "left-out": self.left_out, "violations": broken.collect::<Vec<_>>(),
        }))
    }
}

impl Disk {
    /// Adds what another one has done.
    pub fn add(&mut self, other: &mut Disk) {
        self.syncs.append(&mut other.syncs);
        self.unsynced += other.unsynced;
        self.cut += other.cut;
    }

    /// Returns a percentile of the sorted times.
    fn percentile(&self, percent: usize) -> Duration {
        let at = self.syncs.len() * percent / 100;
        self.syncs
            .get(at.min(self.syncs.len().saturating_sub(1)))
            .copied()
            .unwrap_or_default()
    }
}

fn ms(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1000.0)
}
