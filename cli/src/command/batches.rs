//! `dq batches`: the open batches of a queue.

use super::{about, json, must_exist};
use crate::bounds;
use crate::failure::Failure;
use crate::model::listing;
use crate::output::Output;
use crate::server::Server;
use crate::table::Table;

/// Options of `dq batches`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The queue's key
    queue: String,
    /// How many batches at most
    #[arg(short = 'n', long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(bounds::COUNT.range()))]
    count: u64,
}

/// Prints the batches.
pub fn run(server: &mut Server, args: &Args, out: &mut Output) -> Result<(), Failure> {
    must_exist(server, &args.queue)?;
    let listed = listing::first(server, "DQ.BATCHES", args.queue.as_bytes(), args.count);
    let (batches, more) = listed.map_err(|failure| about(&args.queue, failure))?;
    if out.json {
        return out.json(&json(&batches));
    }
    let fields = "batch pending running dead finished cancelled held";
    let headings = [
        "BATCH",
        ">PENDING",
        ">RUNNING",
        ">DEAD",
        ">FINISHED",
        ">CANCELLED",
        ">HELD",
    ];
    let mut table = Table::new(&headings);
    for one in &batches {
        table.row(fields.split(' ').map(|field| one.text(field)).collect());
    }
    out.table(&table, "no batch is open")?;
    out.rest(more, args.count)
}
