//! `dq children`: the children of a message, and their states.

use super::{about, json, must_exist};
use crate::failure::Failure;
use crate::model::children;
use crate::output::Output;
use crate::server::Server;
use crate::table::Table;

/// Options of `dq children`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The queue's key
    queue: String,
    /// The id of the parent
    id: String,
    /// How many children at most
    #[arg(short = 'n', long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    count: u64,
}

/// Prints the children.
pub fn run(server: &mut Server, args: &Args, out: &mut Output) -> Result<(), Failure> {
    must_exist(server, &args.queue)?;
    let (queue, id) = (args.queue.as_bytes(), args.id.as_bytes());
    let found = children::fetch(server, queue, id, args.count as usize);
    let (children, more) = found.map_err(|failure| about(&args.queue, failure))?;
    if out.json {
        return out.json(&json(&children));
    }
    let mut table = Table::new(&["QUEUE", "ID", "STATE", "RESULT", "ERROR"]);
    for one in &children {
        let fields = ["key", "id", "state", "result", "error"];
        table.row(fields.map(|field| one.text(field)).into());
    }
    out.table(&table, "it has no children, or they have left no record")?;
    out.rest(more, args.count)
}
