//! `dq ls`: the queues, one line each.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use serde_json::Value as Json;

use super::about;
use crate::failure::Failure;
use crate::model::family::{self, Sum};
use crate::model::overview::Sort;
use crate::model::queue::Queue;
use crate::model::trouble::{self, Trouble};
use crate::model::{instance, keys};
use crate::output::Output;
use crate::server::Server;
use crate::table::Table;
use crate::text::printable;
use crate::time_text::span;

/// Options of `dq ls`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only these queues, or those that match: 'jobs:*'; without, all of the server
    #[arg(value_name = "QUEUE")]
    queues: Vec<String>,
    /// Only queues whose names match, as of KEYS: 'jobs:*'
    #[arg(long = "match", value_name = "GLOB", conflicts_with = "queues")]
    pattern: Option<String>,
    /// List families, with the sums of their queues over all servers. QUEUE names a family
    #[arg(long)]
    family: bool,
    /// How the lines are sorted
    #[arg(long, value_enum, default_value_t = Sort::Name)]
    sort: Sort,
}

/// Prints the queues, or the families.
pub fn run(server: &mut Server, args: &Args, out: &mut Output) -> Result<(), Failure> {
    if args.family {
        return families(server, args, out);
    }
    let given = !args.queues.is_empty();
    let names = match given {
        true => keys::named(server, &args.queues)?,
        false => keys::all(server, args.pattern.as_deref().map(str::as_bytes))?,
    };
    if names.is_empty() {
        instance::must_have_module(server)?;
    }
    list(server, &names, given, args.sort, out)?;
    // A script reads no warnings.
    if io::stderr().is_terminal() {
        for warning in instance::warnings(&instance::all(server)?) {
            eprintln!("dq: warning: {warning}");
        }
    }
    Ok(())
}

/// Prints these queues. If they were `given` by the user, each must exist.
pub fn list(
    server: &mut Server,
    names: &[Vec<u8>],
    given: bool,
    sort: Sort,
    out: &mut Output,
) -> Result<(), Failure> {
    let replies = keys::infos(server, names)?;
    let mut found = Vec::new();
    let mut forbidden = None;
    for (name, reply) in names.iter().zip(replies) {
        match reply {
            Ok(info) => found.push((name, info)),
            // A queue that was named must exist. One that was found may be gone by now.
            Err(failure) if given => return Err(about(&String::from_utf8_lossy(name), failure)),
            Err(failure) if failure.is_forbidden() => forbidden = Some(failure),
            Err(_) => {}
        }
    }
    match forbidden {
        Some(failure) if found.is_empty() => return Err(failure),
        _ => {}
    }
    if out.json {
        let queues: Vec<Json> = found
            .iter()
            .map(|(name, info)| {
                let mut queue = serde_json::Map::new();
                queue.insert("queue".to_owned(), crate::json::name(name));
                if let Json::Object(fields) = crate::json::of(info) {
                    queue.extend(fields);
                }
                Json::Object(queue)
            })
            .collect();
        return out.json(&Json::Array(queues));
    }
    let mut queues = Vec::with_capacity(found.len());
    for (name, info) in found {
        queues.push(Queue::of(name, info)?);
    }
    let begun = Instant::now();
    let some = queues.chunks_mut(AT_ONCE);
    for queues in some.take_while(|_| begun.elapsed() < PATIENCE) {
        let found = trouble::look(server, queues)?;
        for (queue, found) in queues.iter_mut().zip(found) {
            queue.trouble.extend(found);
        }
    }
    sort.sort(&mut queues, |queue| queue);
    let mut table = Table::new(&HEADINGS);
    for queue in queues {
        let mut row = vec![printable(&queue.name)];
        row.extend(SHOWN.map(|state| queue.count(state).to_string()));
        row.extend([
            queue.groups.to_string(),
            queue.blocked_clients.to_string(),
            queue.overdue().map(span).unwrap_or_default(),
            queue.lateness[1].map(span).unwrap_or_default(),
            what_stands_out(&queue),
        ]);
        table.row(row);
    }
    out.table(&table.fitted(), "no queues")
}

fn what_stands_out(queue: &Queue) -> String {
    let words = [(queue.paused, "paused"), (queue.closed, "closed")];
    let words = words
        .iter()
        .filter(|(is, _)| *is)
        .map(|(_, word)| (*word).to_owned());
    let trouble = queue.trouble.iter().map(Trouble::sentence);
    words.chain(trouble).collect::<Vec<_>>().join("; ")
}

/// Maximum time for which trouble is looked for, and the number of queues between two looks at the
/// clock.
const PATIENCE: Duration = Duration::from_secs(1);
const AT_ONCE: usize = 32;

const HEADINGS: [&str; 13] = [
    "QUEUE", ">READY", ">DELAYED", ">RETRY", ">BLOCKED", ">HELD", ">RUNNING", ">DEAD", ">GROUPS",
    ">WAITERS", ">OLDEST", ">P99", "TROUBLE",
];

/// The states that have a column.
const SHOWN: [&str; 7] = [
    "ready", "delayed", "retry", "blocked", "held", "running", "dead",
];

/// Prints the families, with the figures of their servers.
fn families(server: &mut Server, args: &Args, out: &mut Output) -> Result<(), Failure> {
    let mut names: Vec<Vec<u8>> = match args.queues.is_empty() {
        false => args
            .queues
            .iter()
            .map(|name| name.clone().into_bytes())
            .collect(),
        true => keys::all(server, args.pattern.as_deref().map(str::as_bytes))?
            .iter()
            .filter_map(|name| family::of(name).map(<[u8]>::to_vec))
            .collect(),
    };
    names.sort();
    names.dedup();
    let mut found = Vec::new();
    for name in names {
        let sum = family::sum(server, &name)?;
        if sum.queues == 0 && !args.queues.is_empty() {
            let name = printable(&name);
            return Err(Failure::mistake(format!(
                "{name}: no queue of such a family"
            )));
        }
        found.push((name, sum));
    }
    if out.json {
        let families = found.iter().map(|(name, sum)| sum_json(name, sum));
        return out.json(&families.collect());
    }
    let mut table = Table::new(&HEADINGS);
    for (name, sum) in &found {
        let mut row = vec![printable(&family::shown(name))];
        row.extend(SHOWN.map(|state| sum.count(state).to_string()));
        row.extend([
            String::new(),
            sum.count("blocked-clients").to_string(),
            sum.overdue().map(span).unwrap_or_default(),
            sum.lateness[1].map(span).unwrap_or_default(),
            String::new(),
        ]);
        table.row(row);
    }
    out.table(&table, "no families")
}

/// Returns the JSON of a family, with the names of DQ.NINFO.
pub fn sum_json(name: &[u8], sum: &Sum) -> Json {
    let mut fields = serde_json::Map::new();
    fields.insert("family".to_owned(), crate::json::name(name));
    fields.insert("queues".to_owned(), sum.queues.into());
    for (name, count) in &sum.counts {
        fields.insert(name.clone(), (*count).into());
    }
    fields.insert("oldest-ready-age".to_owned(), sum.oldest_ready_age.into());
    fields.insert("oldest-due-age".to_owned(), sum.oldest_due_age.into());
    for (name, late) in family::LATENESS.iter().zip(sum.lateness) {
        fields.insert((*name).to_owned(), late.into());
    }
    Json::Object(fields)
}
