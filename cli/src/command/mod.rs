//! The commands that print and end, one file each.

mod ask;
pub mod batches;
pub mod bench;
pub mod children;
pub mod completion;
pub mod explain;
pub mod find;
pub mod limits;
pub mod ls;
pub mod message;
mod options;
pub mod pause;
pub mod peek;
pub mod purge;
pub mod redrive;
pub mod schedule;
pub mod send;
pub mod server;
pub mod settings;
pub mod show;
pub mod tail;
pub mod workers;

use redis::{Cmd, Value};
use serde_json::Value as Json;

use crate::failure::Failure;
use crate::json;
use crate::model::change::Target;
use crate::model::keys;
use crate::model::record::Record;
use crate::server::Server;
use crate::text::printable;

/// Fails unless the queue exists, with its name in the error.
fn must_exist(server: &mut Server, queue: &str) -> Result<(), Failure> {
    keys::must_exist(server, queue.as_bytes()).map_err(|failure| about(queue, failure))
}

/// Sends a command to the queue. A refusal has the name of the queue before its words.
fn call(server: &mut Server, queue: &str, cmd: &Cmd) -> Result<Value, Failure> {
    server.call(cmd).map_err(|failure| about(queue, failure))
}

/// Returns the JSON of records, with all their fields.
fn json(records: &[Record]) -> Json {
    let fields = records.iter().map(Record::fields);
    fields.map(json::map).collect()
}

/// Puts the name of the queue before the words of a refusal.
fn about(queue: &str, failure: Failure) -> Failure {
    match failure {
        Failure::Refused(words) => {
            let words = words.strip_prefix("ERR ").unwrap_or(&words);
            Failure::Refused(format!("{}: {words}", printable(queue.as_bytes())))
        }
        other => other,
    }
}

/// Returns the queue or the family of this name.
fn target(name: &str, family: bool) -> Target {
    let name = name.as_bytes().to_vec();
    match family {
        true => Target::Family(name),
        false => Target::Queue(name),
    }
}
