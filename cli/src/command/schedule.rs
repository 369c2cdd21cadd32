//! `dq schedules`, `dq schedule` and `dq unschedule`.

use serde_json::json;

use super::options::MessageOptions;
use super::send::payload;
use super::{about, call, must_exist};
use crate::failure::Failure;
use crate::model::record::{integer, Record};
use crate::model::schedule;
use crate::output::Output;
use crate::server::{verb, Server};
use crate::table::Table;
use crate::text::printable;
use crate::time_text::{parse_interval, parse_span, parse_time, relative, stamp, Millis};

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
    #[arg(long, value_name = "TIME", value_parser = parse_interval)]
    every: Option<Millis>,
    /// With --every: the first time, 2026-11-20T12:00 (UTC) or Unix milliseconds
    #[arg(long, value_name = "TIME", value_parser = parse_time, requires = "every")]
    start: Option<Millis>,
    /// The last time at which it may send: 2026-12-31T12:00 (UTC), or Unix milliseconds
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    until: Option<Millis>,
    /// How many messages it sends; then it is removed
    #[arg(long, value_name = "N")]
    times: Option<u64>,
    /// Up to how much later each message is due, at random: 30s, 5m
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    jitter: Option<Millis>,
    /// The payload; `-`, or nothing: all of the standard input
    payload: Option<String>,
    /// The fate of times that passed while the server was down
    #[arg(long, value_parser = ["skip", "once", "all"])]
    missed: Option<String>,
    /// Whether the schedule sends while its last message has not ended
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

/// Options of `dq schedules`.
#[derive(Debug, clap::Args)]
pub struct SchedulesArgs {
    /// The queue's key
    queue: String,
    /// Let this schedule send nothing until it is resumed
    #[arg(long, value_name = "NAME", conflicts_with = "resume")]
    pause: Option<String>,
    /// Let this schedule go on
    #[arg(long, value_name = "NAME")]
    resume: Option<String>,
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
    for (option, value) in [
        ("UNTIL", args.until),
        ("TIMES", args.times),
        ("JITTER", args.jitter),
    ] {
        if let Some(value) = value {
            cmd.arg(option).arg(value);
        }
    }
    for (option, value) in [("MISSED", &args.missed), ("OVERLAP", &args.overlap)] {
        if let Some(value) = value {
            cmd.arg(option).arg(value);
        }
    }
    let reply = call(server, &args.queue, &cmd)?;
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
    let name = printable(args.name.as_bytes());
    schedule::remove(server, args.queue.as_bytes(), args.name.as_bytes())
        .map_err(|failure| about(&args.queue, failure))?;
    match out.json {
        true => out.json(&json!({ "unscheduled": name })),
        false => out.line(&format!("{name} is removed; what it has sent stays")),
    }
}

/// Lists the schedules of a queue, or pauses or resumes one.
pub fn schedules(
    server: &mut Server,
    args: &SchedulesArgs,
    out: &mut Output,
) -> Result<(), Failure> {
    must_exist(server, &args.queue)?;
    let queue = args.queue.as_bytes();
    let (name, held) = match (&args.pause, &args.resume) {
        (Some(name), _) => (name, true),
        (None, Some(name)) => (name, false),
        (None, None) => return list(server, &args.queue, out),
    };
    schedule::hold(server, queue, name.as_bytes(), held)
        .map_err(|failure| about(&args.queue, failure))?;
    let name = printable(name.as_bytes());
    match (out.json, held) {
        (true, _) => out.json(&json!({ "schedule": name, "paused": held })),
        (false, true) => out.line(&format!("{name} is paused: it sends nothing")),
        (false, false) => out.line(&format!("{name} goes on")),
    }
}

fn list(server: &mut Server, queue: &str, out: &mut Output) -> Result<(), Failure> {
    let reply = call(server, queue, &verb("DQ.SCHEDULES", queue.as_bytes()))?;
    if out.json {
        return out.json(&crate::json::of(&reply));
    }
    // The times follow the queue's clock, which does not move by itself in a MANUAL queue.
    let info = server.call(&verb("DQ.INFO", queue.as_bytes())).ok();
    let now = info.and_then(|info| Record::of(info).ok()?.number("now"));
    let table = table(&Record::all(reply)?, now);
    out.table(&table, "no schedules")
}

/// Returns the schedules of a queue as a table, with their times relative to its clock.
pub fn table(schedules: &[Record], now: Option<Millis>) -> Table {
    let mut table = Table::new(&["SCHEDULE", "RULE", ">FIRED", ">SKIPPED", "NEXT", "LAST"]);
    for one in schedules {
        let time = |field: &str| {
            let time = one.number(field).zip(now);
            time.map_or(String::new(), |(at, now)| relative(at, now))
        };
        let next = match one.flag("paused") {
            true => "paused".to_owned(),
            false => time("next-at"),
        };
        table.row(vec![
            one.text("name"),
            schedule::rule(one),
            one.text("fired"),
            one.text("skipped"),
            next,
            time("last-at"),
        ]);
    }
    table
}
