//! `dq purge`: removes messages without a record.

use serde_json::json;

use super::ask::confirm;
use super::{about, must_exist, target};
use crate::failure::Failure;
use crate::model::queue::{Queue, STATES};
use crate::model::record::integer;
use crate::output::Output;
use crate::server::{verb, Server};
use crate::text::{plural, printable};

/// Options of `dq purge`.
#[derive(Debug, clap::Args)]
#[command(override_usage = "dq purge <QUEUE> <--state <STATE>|--group <GROUP>|--all> [--yes]")]
pub struct Args {
    /// The queue's key
    queue: String,
    /// Only messages of this state
    #[arg(long, value_parser = STATES, required_unless_present_any = ["group", "all"])]
    state: Option<String>,
    /// Only messages of this group
    #[arg(long)]
    group: Option<String>,
    /// All messages and records
    #[arg(long, conflicts_with_all = ["state", "group"])]
    all: bool,
    /// QUEUE names a family: all its queues
    #[arg(long)]
    family: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

/// Asks, and removes.
pub fn run(server: &mut Server, args: &Args, out: &mut Output) -> Result<(), Failure> {
    if !args.family {
        must_exist(server, &args.queue)?;
    }
    let target = target(&args.queue, args.family);
    let queues = target
        .queues(server)
        .map_err(|failure| about(&args.queue, failure))?;
    let mut count = 0;
    for queue in &queues {
        let info = Queue::of(queue, server.call(&verb("DQ.INFO", queue))?)?;
        count += match &args.state {
            Some(state) => info.count(state),
            None => info.counts.iter().sum(),
        };
    }
    let shown = target.shown();
    let of_state = args.state.as_ref().map(|state| format!("{state} "));
    let of_state = of_state.unwrap_or_default();
    let question = match &args.group {
        // No command tells how many messages of a group there are in all states.
        Some(group) => {
            let group = printable(group.as_bytes());
            format!("Remove all {of_state}messages of group {group} of {shown}?")
        }
        None => format!(
            "Remove {} of {shown}?",
            plural(count, &format!("{of_state}message"))
        ),
    };
    confirm(&question, args.yes)?;
    let mut removed = 0;
    for queue in &queues {
        let mut cmd = verb("DQ.PURGE", queue);
        for (option, value) in [("STATE", &args.state), ("GROUP", &args.group)] {
            if let Some(value) = value {
                cmd.arg(option).arg(value);
            }
        }
        let reply = server.call(&cmd);
        removed += integer(&reply.map_err(|failure| about(&args.queue, failure))?)?;
    }
    match out.json {
        true => out.json(&json!({ "purge": removed })),
        false => out.line(&format!("{} removed", plural(removed, "message"))),
    }
}
