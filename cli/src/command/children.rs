//! `dq children`: the children of a message, and their states.

use super::{about, json, must_exist};
use crate::failure::Failure;
use crate::model::record::Record;
use crate::output::Output;
use crate::server::{verb, Server};
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
    let (children, more) = fetch(server, args).map_err(|failure| about(&args.queue, failure))?;
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

/// Fetches the children, page by page: a page may have none. Returns whether there are more.
fn fetch(server: &mut Server, args: &Args) -> Result<(Vec<Record>, bool), Failure> {
    let most = args.count as usize;
    let mut found: Vec<Record> = Vec::new();
    let mut cursor = b"0".to_vec();
    loop {
        let mut cmd = verb("DQ.CHILDREN", args.queue.as_bytes());
        cmd.arg(&args.id).arg("CURSOR").arg(&cursor);
        cmd.arg("COUNT")
            .arg(most.saturating_sub(found.len()).max(1));
        let (next, page) = Record::page(server.call(&cmd)?)?;
        found.extend(page);
        match next {
            None => return Ok((found, false)),
            Some(_) if found.len() >= most => return Ok((found, true)),
            Some(next) => cursor = next,
        }
    }
}
