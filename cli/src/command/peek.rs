//! `dq peek`: the next messages that would be delivered.

use super::{call, must_exist};
use crate::bounds;
use crate::failure::Failure;
use crate::model::coded;
use crate::model::record::Record;
use crate::output::Output;
use crate::server::{verb, Server};
use crate::table::Table;
use crate::text::cut;

/// Options of `dq peek`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The queue's key
    queue: String,
    /// How many messages at most
    #[arg(short = 'n', long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(bounds::COUNT.range()))]
    count: u64,
    /// How many columns of a payload are printed in the table
    #[arg(long, default_value_t = 60)]
    width: usize,
}

/// Prints the messages in the order in which they would be delivered.
pub fn run(server: &mut Server, args: &Args, out: &mut Output) -> Result<(), Failure> {
    must_exist(server, &args.queue)?;
    let mut cmd = verb("DQ.PEEK", args.queue.as_bytes());
    cmd.arg("COUNT").arg(args.count);
    let reply = call(server, &args.queue, &cmd)?;
    if out.json {
        return out.json(&crate::json::of(&reply));
    }
    let mut table = Table::new(&["ID", "GROUP", ">PRIORITY", ">FAILURES", "TYPE", "PAYLOAD"]);
    for message in Record::all(reply)? {
        let payload = coded::line(args.queue.as_bytes(), &message);
        table.row(vec![
            message.text("id"),
            message.text("group"),
            message.text("priority"),
            message.text("failures"),
            message.text("type"),
            cut(&payload, args.width),
        ]);
    }
    out.table(&table, "nothing can be delivered now")
}
