//! `dq redrive`: dead messages run again.

use serde_json::json;

use super::ask::confirm;
use super::{about, must_exist, target};
use crate::bounds;
use crate::failure::Failure;
use crate::model::change::Change;
use crate::model::count;
use crate::model::find::{Act, Filter};
use crate::model::record::integer;
use crate::output::Output;
use crate::server::{verb, Server};
use crate::text::plural;

/// Options of `dq redrive`.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "dq redrive <QUEUE> <ID>...\n       dq redrive <QUEUE> --all [--count <N>] [--family] [--yes]"
)]
#[command(group(clap::ArgGroup::new("which").required(true).args(["ids", "all"])))]
pub struct Args {
    /// The queue's key
    queue: String,
    /// The ids of dead messages
    #[arg(
        value_name = "ID",
        required_unless_present = "all",
        conflicts_with = "all"
    )]
    ids: Vec<String>,
    /// All dead messages, the oldest death first
    #[arg(long)]
    all: bool,
    /// With --all: no more than so many
    #[arg(short = 'n', long, requires = "all", value_parser = clap::value_parser!(u64).range(bounds::COUNT.range()))]
    count: Option<u64>,
    /// With --all: QUEUE names a family, all dead messages of its queues
    #[arg(long, requires = "all")]
    family: bool,
    /// With --all: do not ask
    #[arg(short, long, requires = "all")]
    yes: bool,
}

/// Redrives, and prints how many are pending again.
pub fn run(server: &mut Server, args: &Args, out: &mut Output) -> Result<(), Failure> {
    if !args.family {
        must_exist(server, &args.queue)?;
    }
    let redriven = if args.all {
        if !args.yes {
            let target = target(&args.queue, args.family);
            let queues = target.queues(server);
            let queues = queues.map_err(|failure| about(&args.queue, failure))?;
            let count = count::count(server, &queues, &Filter::of_state("dead")?, Act::Redrive)?;
            let most = args.count.unwrap_or(u64::MAX).min(count.found);
            let dead = plural(most, "dead message");
            confirm(&format!("Redrive {dead} of {}?", target.shown()), false)?;
        }
        Change::Redrive(target(&args.queue, args.family), args.count).execute(server)
    } else {
        let mut cmd = verb("DQ.REDRIVE", args.queue.as_bytes());
        cmd.arg("IDS").arg(args.ids.len()).arg(&args.ids);
        server.call(&cmd).and_then(|reply| integer(&reply))
    };
    let redriven = redriven.map_err(|failure| about(&args.queue, failure))?;
    match out.json {
        true => out.json(&json!({ "redriven": redriven })),
        false => out.line(&format!("{} pending again", plural(redriven, "message"))),
    }
}
