//! `dq limits` and `dq limit`: the limits with names of a queue.

use super::{about, call, json, must_exist};
use crate::bounds;
use crate::failure::Failure;
use crate::model::limit::Limit;
use crate::model::listing;
use crate::model::option_words::words;
use crate::model::record::Record;
use crate::output::Output;
use crate::server::{verb, Server};
use crate::table::Table;
use crate::text::printable;
use crate::time_text::relative;

/// Options of `dq limits`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The queue's key
    queue: String,
    /// How many limits at most
    #[arg(short = 'n', long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(bounds::COUNT.range()))]
    count: u64,
}

/// Options of `dq limit`.
#[derive(Debug, clap::Args)]
#[command(override_usage = "dq limit <QUEUE> <NAME> <--remove|OPTION VALUE...>")]
#[command(group(clap::ArgGroup::new("what").required(true).args(["remove", "options"])))]
pub struct SetArgs {
    /// The queue's key
    queue: String,
    /// The name of the limit; one with `*` is a pattern
    name: String,
    /// Remove the limit
    #[arg(long)]
    remove: bool,
    /// Options of DQ.LIMIT, with times as 30s, 5m, 2h or 1d: rate 1000 per 1m concurrency 5 weight
    #[arg(value_name = "OPTION VALUE")]
    options: Vec<String>,
}

/// Sets or removes a limit.
pub fn set(server: &mut Server, args: &SetArgs, out: &mut Output) -> Result<(), Failure> {
    must_exist(server, &args.queue)?;
    let mut cmd = verb("DQ.LIMIT", args.queue.as_bytes());
    let options = words(&args.options).map_err(Failure::mistake)?;
    cmd.arg(&args.name).arg(options);
    call(server, &args.queue, &cmd)?;
    let done = if args.remove { "removed" } else { "limited" };
    match out.json {
        true => out.json(&serde_json::json!({ done: args.name })),
        false => out.line(&format!("{} is {done}", printable(args.name.as_bytes()))),
    }
}

/// Prints the limits, and how much of each is used.
pub fn run(server: &mut Server, args: &Args, out: &mut Output) -> Result<(), Failure> {
    must_exist(server, &args.queue)?;
    let key = args.queue.as_bytes();
    let listed = listing::first(server, "DQ.LIMITS", key, args.count);
    let (limits, more) = listed.map_err(|failure| about(&args.queue, failure))?;
    if out.json {
        return out.json(&json(&limits));
    }
    let info = Record::of(server.call(&verb("DQ.INFO", key))?)?;
    let now = info.count("now");
    let mut table = Table::new(&["LIMIT", "RULE", "RUNNING", "BEGUN", ">WAITING", "NEXT FREE"]);
    for one in limits.iter().map(Limit::of) {
        table.row(vec![
            printable(&one.name),
            one.rule.as_deref().map(printable).unwrap_or_default(),
            one.running_words(),
            one.rate_words(),
            one.waiting.to_string(),
            match one.next_free {
                _ if one.is_never => "never".to_owned(),
                Some(at) if at > now => relative(at, now),
                Some(_) => "now".to_owned(),
                None => String::new(),
            },
        ]);
    }
    out.table(&table, "no limit is set or used")?;
    out.rest(more, args.count)
}
