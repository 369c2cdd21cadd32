//! `dq tail`: follows a queue.

use std::collections::HashSet;
use std::thread;
use std::time::Duration;

use redis::Value;
use serde_json::json;

use super::about;
use crate::bounds;
use crate::failure::Failure;
use crate::model::coded;
use crate::model::message::remarks;
use crate::model::record::Record;
use crate::output::Output;
use crate::server::{verb, Server};
use crate::text::printable;
use crate::time_text::{clock, here, parse_interval, stamp, Millis};

/// The states in which messages end, in the server's order of ending.
const ENDED: [&str; 3] = ["finished", "dead", "cancelled"];

/// Number of records of one page.
const PAGE: usize = 1000;

/// Options of `dq tail`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The queue's key
    queue: String,
    /// Print every event of the queue (sent, ready, delivered, acked, ...), without ids, as the
    /// server's keyspace events tell them; they must be enabled there
    #[arg(long)]
    events: bool,
    /// Begin with the records that are there, instead of the next
    #[arg(long, conflicts_with = "events")]
    all: bool,
    /// How often to look for messages that ended
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = parse_interval)]
    interval: Millis,
    /// End after this number of lines
    #[arg(short = 'n', long, value_parser = clap::value_parser!(u64).range(bounds::MANY.range()))]
    count: Option<u64>,
}

/// Prints a line for each message that ends, or for each event, until interrupted.
pub fn run(server: &mut Server, args: &Args, out: &mut Output) -> Result<(), Failure> {
    let info = server.call(&verb("DQ.INFO", args.queue.as_bytes()));
    let info = match info {
        Err(failure) if failure.is_forbidden() => None,
        info => Some(Record::of(
            info.map_err(|failure| about(&args.queue, failure))?,
        )?),
    };
    if args.events {
        return events(server, args, out);
    }
    if info.is_some_and(|info| info.count("retain") == 0) {
        eprintln!(
            "dq: this queue keeps no records of finished messages (RETAIN 0): only dead ones will \
             show. Try --events"
        );
    }
    records(server, args, out)
}

/// The position in the listing of the records of one state.
///
/// Only the server can say where a listing goes on, so the last page is read again
/// from its beginning each time. The records of it that were printed are remembered.
struct Place {
    state: &'static str,
    cursor: Option<Vec<u8>>,
    seen: HashSet<(Vec<u8>, u64)>,
}

impl Place {
    /// Returns the records of messages that ended since the last call, the oldest first.
    fn step(&mut self, server: &mut Server, queue: &[u8]) -> Result<Vec<Record>, Failure> {
        let mut fresh = Vec::new();
        loop {
            let mut cmd = verb("DQ.LIST", queue);
            cmd.arg(self.state).arg("COUNT").arg(PAGE);
            if let Some(cursor) = &self.cursor {
                cmd.arg("CURSOR").arg(cursor);
            }
            let (next, records) = Record::page(server.call(&cmd)?)?;
            // A message that was redriven may end again, at another time.
            let ends = |record: &Record| {
                let id = record.bytes("id").unwrap_or_default().to_vec();
                (id, record.count("finished-at"))
            };
            let page: HashSet<_> = records.iter().map(ends).collect();
            fresh.extend(
                records
                    .into_iter()
                    .filter(|record| !self.seen.contains(&ends(record))),
            );
            match next {
                Some(next) => {
                    self.cursor = Some(next);
                    self.seen.clear();
                }
                None => {
                    self.seen = page;
                    return Ok(fresh);
                }
            }
        }
    }
}

fn records(server: &mut Server, args: &Args, out: &mut Output) -> Result<(), Failure> {
    let queue = args.queue.as_bytes();
    let mut places = ENDED.map(|state| Place {
        state,
        cursor: None,
        seen: HashSet::new(),
    });
    let mut left = args.count.unwrap_or(u64::MAX);
    let mut first = true;
    loop {
        let mut fresh = Vec::new();
        for place in &mut places {
            let step = place
                .step(server, queue)
                .map_err(|failure| about(&args.queue, failure))?;
            fresh.extend(step);
        }
        if !first || args.all {
            fresh.sort_by_key(|record| record.count("finished-at"));
            for record in fresh {
                match out.json {
                    true => out.json(&crate::json::map(record.fields()))?,
                    false => out.line(&line(&coded::texts(queue, &record)))?,
                }
                left -= 1;
                if left == 0 {
                    return Ok(());
                }
            }
        }
        first = false;
        thread::sleep(Duration::from_millis(args.interval));
    }
}

fn line(record: &Record) -> String {
    let at = record.number("finished-at").map(stamp).unwrap_or_default();
    let (state, id) = (record.text("state"), record.text("id"));
    format!("{at}  {state:<9}  {id}  {}", remarks(record))
}

fn events(server: &mut Server, args: &Args, out: &mut Output) -> Result<(), Failure> {
    if !server.nodes().is_empty() {
        return Err(Failure::mistake(
            "the events of a cluster cannot be followed: each node has its own",
        ));
    }
    let queue = args.queue.as_bytes();
    let settings = server.call(
        redis::cmd("CONFIG")
            .arg("GET")
            .arg("notify-keyspace-events"),
    );
    if let Ok(Value::Map(settings)) = settings {
        let classes = settings
            .first()
            .map(|(_, value)| crate::model::record::shown(value));
        let classes = classes.unwrap_or_default();
        // "A" stands for all classes that existed before modules had one, and for `d`.
        if !classes.contains('K') || !classes.contains(['d', 'A']) {
            return Err(Failure::mistake(format!(
                "the server tells of no events of queues (notify-keyspace-events is '{classes}'): \
                 CONFIG SET notify-keyspace-events Kd"
            )));
        }
    }
    let mut channel = format!("__keyspace@{}__:", server.db()).into_bytes();
    channel.extend_from_slice(queue);
    let mut left = args.count.unwrap_or(u64::MAX);
    let json = out.json;
    let followed = server.subscribe(&channel, |event| {
        let event = printable(event);
        match json {
            true => out.json(&json!({ "at": here(), "event": event }))?,
            false => out.line(&format!("{}  {event}", clock(here())))?,
        }
        left -= 1;
        match left {
            // Only a failure ends the loop. The caller handles this one.
            0 => Err(Failure::ClosedPipe),
            _ => Ok(()),
        }
    });
    match followed {
        Err(Failure::ClosedPipe) => Ok(()),
        followed => followed,
    }
}
