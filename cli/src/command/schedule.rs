//! `dq schedule` and `dq unschedule`.

use serde_json::json;

use super::options::MessageOptions;
use super::send::payload;
use super::{about, must_exist};
use crate::failure::Failure;
use crate::model::record::integer;
use crate::output::Output;
use crate::server::{verb, Server};
use crate::text::printable;
use crate::time_text::{parse_span, parse_time, stamp, Millis};

/// Options of `dq schedule`.
#[derive(Debug, clap::Args)]
#[command(override_usage = "dq schedule <QUEUE> <NAME> <--cron <RULE>|--every <TIME>> [PAYLOAD]")]
pub struct ScheduleArgs {
    /// The queue's key
    queue: String,
    /// The schedule's name. One of the same name is replaced
    name: String,
    /// A cron rule: '0 3 * * *', '@daily'
    #[arg(
        long,
        value_name = "RULE",
        required_unless_present = "every",
        conflicts_with = "every"
    )]
    cron: Option<String>,
    /// With --cron: the time zone, as Europe/Berlin
    #[arg(long, value_name = "ZONE", requires = "cron", conflicts_with_all = ["every", "start"])]
    tz: Option<String>,
    /// An interval: 30s, 5m, 2h, 1d
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    every: Option<Millis>,
    /// With --every: the first time, 2026-11-20T12:00 (UTC) or Unix milliseconds
    #[arg(long, value_name = "TIME", value_parser = parse_time, requires = "every")]
    start: Option<Millis>,
    /// The payload; `-`, or nothing: all of the standard input
    payload: Option<String>,
    /// What becomes of times that passed while the server was down
    #[arg(long, value_parser = ["skip", "once", "all"])]
    missed: Option<String>,
    /// Whether it sends while its last message has not ended
    #[arg(long, value_parser = ["queue", "skip"])]
    overlap: Option<String>,
    /// Make the queue if it does not exist
    #[arg(long)]
    new: bool,
    #[command(flatten)]
    options: MessageOptions,
}

/// Options of `dq unschedule`.
#[derive(Debug, clap::Args)]
pub struct UnscheduleArgs {
    /// The queue's key
    queue: String,
    /// The schedule's name
    name: String,
}

/// Makes a schedule, and prints when it sends first.
pub fn schedule(server: &mut Server, args: &ScheduleArgs, out: &mut Output) -> Result<(), Failure> {
    if !args.new {
        must_exist(server, &args.queue)?;
    }
    let mut cmd = verb("DQ.SCHEDULE", args.queue.as_bytes());
    cmd.arg(&args.name);
    match (&args.cron, args.every) {
        (Some(rule), _) => cmd.arg("CRON").arg(rule),
        (None, every) => cmd.arg("EVERY").arg(every),
    };
    if let Some(zone) = &args.tz {
        cmd.arg("TZ").arg(zone);
    }
    if let Some(start) = args.start {
        cmd.arg("START").arg(start);
    }
    cmd.arg("PAYLOAD").arg(payload(args.payload.as_deref())?);
    args.options.add_to(&mut cmd);
    for (option, value) in [("MISSED", &args.missed), ("OVERLAP", &args.overlap)] {
        if let Some(value) = value {
            cmd.arg(option).arg(value);
        }
    }
    let reply = server
        .call(&cmd)
        .map_err(|failure| about(&args.queue, failure))?;
    let next = integer(&reply)?;
    let name = printable(args.name.as_bytes());
    match out.json {
        true => out.json(&json!({ "schedule": name, "next-at": next })),
        false => out.line(&format!("{name} sends first at {}", stamp(next))),
    }
}

/// Removes a schedule.
pub fn unschedule(
    server: &mut Server,
    args: &UnscheduleArgs,
    out: &mut Output,
) -> Result<(), Failure> {
    must_exist(server, &args.queue)?;
    let mut cmd = verb("DQ.UNSCHEDULE", args.queue.as_bytes());
    cmd.arg(&args.name);
    let reply = server
        .call(&cmd)
        .map_err(|failure| about(&args.queue, failure))?;
    let name = printable(args.name.as_bytes());
    match integer(&reply)? {
        0 => Err(Failure::mistake(format!(
            "no schedule with the name {name}"
        ))),
        _ if out.json => out.json(&json!({ "unscheduled": name })),
        _ => out.line(&format!("{name} is removed; what it has sent stays")),
    }
}
