//! `dq workers`: the consumers of all queues, and what each of them holds.

use std::thread;
use std::time::Duration;

use crate::failure::Failure;
use crate::model::keys;
use crate::model::queue::Queue;
use crate::model::workers::{Worker, Workers};
use crate::output::Output;
use crate::server::Server;
use crate::table::Table;
use crate::text::printable;
use crate::time_text::{parse_interval, span, Millis};

/// Options of `dq workers`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only those of these queues, or of those that match: 'jobs:*'; without, of all
    #[arg(value_name = "QUEUE")]
    queues: Vec<String>,
    /// Look a second time after so long, and print the rates between: 2s
    #[arg(long, value_name = "TIME", value_parser = parse_interval)]
    rates: Option<Millis>,
}

/// Prints the consumers, those first that hold a message for the longest time.
pub fn run(server: &mut Server, args: &Args, out: &mut Output) -> Result<(), Failure> {
    let names = match args.queues.is_empty() {
        true => keys::all(server, None)?,
        false => keys::named(server, &args.queues)?,
    };
    let mut queues = Vec::with_capacity(names.len());
    for (name, reply) in names.iter().zip(keys::infos(server, &names)?) {
        // A queue may be gone by now, or closed to the user.
        if let Ok(info) = reply {
            queues.push(Queue::of(name, info)?);
        }
    }
    let mut workers = Workers::fetch(server, queues.iter())?;
    if let Some(time) = args.rates {
        thread::sleep(Duration::from_millis(time));
        let before = workers;
        workers = Workers::fetch(server, queues.iter())?;
        workers.since(&before);
    }
    if out.json {
        return out.json(&workers.found.iter().map(Worker::json).collect());
    }
    let mut table = Table::new(&[
        "WORKER", ">RUNNING", ">LONGEST", "MESSAGE", "QUEUE", ">ACKED", ">/S", ">NACKED", ">/S",
        ">SEEN",
    ]);
    for one in &workers.found {
        let longest = one.held.first();
        let queue = longest.map(|held| &held.queue).or(one.queues.first());
        let rate = |i: usize| one.per_second.map(|rates| format!("{:.1}", rates[i]));
        table.row(vec![
            one.shown().to_owned(),
            one.running.to_string(),
            longest
                .and_then(|held| held.age)
                .map(span)
                .unwrap_or_default(),
            longest.map(|held| printable(&held.id)).unwrap_or_default(),
            queue.map(|queue| printable(queue)).unwrap_or_default(),
            one.acked.to_string(),
            rate(0).unwrap_or_default(),
            one.nacked.to_string(),
            rate(1).unwrap_or_default(),
            one.idle.map(span).unwrap_or_default(),
        ]);
    }
    out.table(&table, "no consumers, and no messages that run")?;
    let (asked, of) = workers.asked;
    match asked < of {
        true => out.line(&format!(
            "{asked} of {of} queues were asked in the time that this may take"
        )),
        false => Ok(()),
    }
}
