//! `dq batches`: the open batches of a queue.

use super::{about, must_exist};
use crate::failure::Failure;
use crate::model::batch;
use crate::output::Output;
use crate::server::{verb, Server};
use crate::table::Table;
use crate::text::printable;

/// Options of `dq batches`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The queue's key
    queue: String,
    /// How many batches at most
    #[arg(short = 'n', long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    count: u64,
}

/// Prints the batches.
pub fn run(server: &mut Server, args: &Args, out: &mut Output) -> Result<(), Failure> {
    must_exist(server, &args.queue)?;
    let key = args.queue.as_bytes();
    if out.json {
        let mut cmd = verb("DQ.BATCHES", key);
        cmd.arg("COUNT").arg(args.count);
        let reply = server
            .call(&cmd)
            .map_err(|failure| about(&args.queue, failure))?;
        let (_, records) = crate::model::record::Record::page(reply)?;
        return out.json(
            &records
                .iter()
                .map(|r| crate::json::map(r.fields()))
                .collect(),
        );
    }
    let (batches, more) = batch::fetch(server, key, args.count as usize)
        .map_err(|failure| about(&args.queue, failure))?;
    let mut table = Table::new(&[
        "BATCH",
        ">PENDING",
        ">RUNNING",
        ">DEAD",
        ">FINISHED",
        ">CANCELLED",
        ">HELD",
    ]);
    for one in batches {
        let mut row = vec![printable(&one.name)];
        let counts = [
            one.pending,
            one.running,
            one.dead,
            one.finished,
            one.cancelled,
            one.held,
        ];
        row.extend(counts.map(|count| count.to_string()));
        table.row(row);
    }
    match table.is_empty() {
        true => return out.line("no batch is open"),
        false => table.write(out.to)?,
    }
    match more {
        true => out.line(&format!("... and more than these {}", args.count)),
        false => Ok(()),
    }
}
