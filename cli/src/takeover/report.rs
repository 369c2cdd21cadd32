//! The report of an import: its progress, and the tables at its end.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use serde_json::json;

use super::lane::Lane;
use crate::failure::Failure;
use crate::output::Output;
use crate::table::Table;
use crate::text::{plural, printable};
use crate::time_text::span;

/// The time between two lines, and between two states of a bar.
const LINE: Duration = Duration::from_secs(1);
const BAR: Duration = Duration::from_millis(200);

/// The most lost jobs that are named in the table.
const NAMED: usize = 20;

/// The columns of a bar.
const WIDTH: u64 = 24;

/// Progress on the standard error: a bar on a terminal, a line a second elsewhere.
pub struct Progress {
    began: Instant,
    shown: Instant,
    moved: u64,
    /// How many jobs were left when that was asked last.
    left: u64,
    is_bar: bool,
    is_json: bool,
}

impl Progress {
    /// Begins.
    pub fn new(is_json: bool) -> Progress {
        Progress {
            began: Instant::now(),
            shown: Instant::now(),
            moved: 0,
            left: 0,
            is_bar: std::io::stderr().is_terminal() && !is_json,
            is_json,
        }
    }

    /// Notes how many jobs are left.
    pub fn left(&mut self, left: u64) {
        self.left = left;
    }

    /// Notes jobs that have gone, and shows it if it is time.
    pub fn add(&mut self, jobs: u64) {
        self.moved += jobs;
        self.left = self.left.saturating_sub(jobs);
        let every = if self.is_bar { BAR } else { LINE };
        if self.shown.elapsed() < every {
            return;
        }
        self.shown = Instant::now();
        let second = self.moved as f64 / self.began.elapsed().as_secs_f64().max(1e-9);
        let until = (self.left as f64 / second.max(1.0) * 1e3) as u64;
        let text = format!(
            "{} moved, {} left, {second:.0} a second, {} more",
            self.moved,
            self.left,
            span(until)
        );
        if self.is_json {
            let line =
                json!({ "moved": self.moved, "left": self.left, "per_second": second.round() });
            eprintln!("{line}");
        } else if self.is_bar {
            let done = self.moved * WIDTH / (self.moved + self.left).max(1);
            let bar = "#".repeat(done as usize);
            eprint!("\r\x1b[K[{bar:<24}] {text}");
            let _ = std::io::stderr().flush();
        } else {
            eprintln!("{text}");
        }
    }

    /// Ends the bar.
    pub fn end(&self) {
        if self.is_bar && self.moved > 0 {
            eprintln!("\r\x1b[K");
        }
    }
}

/// The result for the queues.
pub struct Done {
    /// The queues.
    pub lanes: Vec<Lane>,
    /// How long it took.
    pub took: Duration,
    /// The PING of both servers meanwhile, ms, that 99 of 100 did not exceed.
    pub ping: f64,
    /// How many jobs of each queue its workers still have.
    pub running: Vec<u64>,
}

/// Prints what has become of the queues. Fails, with the exit code 3, if something stayed.
pub fn end(done: &Done, out: &mut Output) -> Result<(), Failure> {
    let Done {
        lanes,
        took,
        ping,
        running,
    } = done;
    let running = running.iter().copied().chain(std::iter::repeat(0));
    let (mut all, mut stayed) = (0, 0);
    let mut table = Table::new(&["QUEUE", "PLACE", ">MOVED", ">STAYED", "WHY"]);
    let mut list = Vec::new();
    for (lane, running) in lanes.iter().zip(running) {
        let mut stays: BTreeMap<String, u64> = lane.stays.clone();
        for (why, count) in lane
            .passed_over()
            .into_iter()
            .chain(lane.seen.stays.clone())
        {
            *stays.entry(why).or_default() += count;
        }
        let lost = lane.lost.len() as u64;
        if running > lost {
            stays.insert("running".to_owned(), running - lost);
        }
        if lost > 0 {
            let ids: Vec<_> = lane
                .lost
                .iter()
                .take(NAMED)
                .map(|id| printable(id))
                .collect();
            let rest = if lane.lost.len() > NAMED { ", ..." } else { "" };
            stays.insert(
                format!("LOST by its worker: {}{rest}", ids.join(", ")),
                lost,
            );
        }
        let name = &lane.names.queue;
        for (place, count) in &lane.moved {
            all += count;
            table.row(vec![
                name.clone(),
                place.clone(),
                count.to_string(),
                String::new(),
                String::new(),
            ]);
        }
        for (why, count) in &stays {
            // The ended ones are no jobs any more.
            stayed += if why == "completed" { 0 } else { *count };
            table.row(vec![
                name.clone(),
                String::new(),
                String::new(),
                count.to_string(),
                why.clone(),
            ]);
        }
        list.push(json!({
            "queue": name, "key": crate::json::name(&lane.names.key), "moved": lane.moved, "stayed": stays,
            "lost": lane.lost.iter().map(|id| printable(id)).collect::<Vec<_>>(),
        }));
    }
    let second = all as f64 / took.as_secs_f64().max(1e-3);
    match out.json {
        true => out.json(&json!({
            "queues": list, "moved": all, "stayed": stayed, "seconds": took.as_secs_f64(), "per_second": second.round(),
            "ping_p99_ms": ping,
        }))?,
        false => {
            out.table(&table, "nothing was there")?;
            let jobs = plural(all, "job");
            let ms = took.as_millis() as u64;
            out.line(&format!("{jobs} in {}, {second:.0} a second; PING p99 {ping:.1} ms", span(ms)))?;
        }
    }
    match stayed {
        0 => Ok(()),
        _ => Err(Failure::Stayed(stayed)),
    }
}
