//! `dq ls`: the queues, one line each.

use serde_json::Value as Json;

use super::{about, Output};
use crate::failure::Failure;
use crate::model::keys;
use crate::model::queue::Queue;
use crate::moment::span;
use crate::server::Server;
use crate::table::Table;
use crate::text::printable;

/// Options of `dq ls`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only these queues; without, the server is searched for all
    #[arg(value_name = "QUEUE")]
    queues: Vec<String>,
    /// Only queues whose names match, as of KEYS: 'jobs:*'
    #[arg(long = "match", value_name = "GLOB", conflicts_with = "queues")]
    pattern: Option<String>,
}

/// Prints the queues.
pub fn run(server: &mut Server, args: &Args, out: &mut Output) -> Result<(), Failure> {
    let given = !args.queues.is_empty();
    let names = match given {
        true => args
            .queues
            .iter()
            .map(|name| name.clone().into_bytes())
            .collect(),
        false => keys::all(server, args.pattern.as_deref())?,
    };
    let replies = keys::infos(server, &names)?;
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
    let mut table = Table::new(&[
        "QUEUE", ">READY", ">DELAYED", ">RETRY", ">BLOCKED", ">RUNNING", ">DEAD", ">GROUPS",
        ">WAITERS", ">OLDEST", ">P99", "PAUSED",
    ]);
    for (name, info) in found {
        let queue = Queue::of(name, info)?;
        let count = |state| queue.count(state).to_string();
        table.row(vec![
            printable(name),
            count("ready"),
            count("delayed"),
            count("retry"),
            count("blocked"),
            count("running"),
            count("dead"),
            queue.groups.to_string(),
            queue.blocked_clients.to_string(),
            queue.oldest_ready_age.map(span).unwrap_or_default(),
            queue.lateness[1].map(span).unwrap_or_default(),
            (if queue.paused { "paused" } else { "" }).to_owned(),
        ]);
    }
    match table.is_empty() {
        true => out.line("no queues"),
        false => Ok(table.write(out.to)?),
    }
}
