//! `dq cancel`, `dq reschedule`, `dq update` and `dq signal`: changes of messages that are named.

use redis::Value;
use serde_json::json;

use super::send::payload;
use super::{call, must_exist};
use crate::failure::Failure;
use crate::model::record::{bytes, integer, unexpected};
use crate::output::Output;
use crate::server::{verb, Server};
use crate::text::printable;
use crate::time_text::{parse_span, parse_time, Millis};

/// Options of `dq cancel`.
#[derive(Debug, clap::Args)]
pub struct CancelArgs {
    /// The queue's key
    queue: String,
    /// The ids of messages; `dq find QUEUE STATE --act cancel` cancels by conditions
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
}

/// Options of `dq reschedule`.
#[derive(Debug, clap::Args)]
#[command(override_usage = "dq reschedule <QUEUE> <ID> <--now|--delay <TIME>|--at <TIME>>")]
#[command(group(clap::ArgGroup::new("when").required(true).args(["now", "delay", "at"])))]
pub struct RescheduleArgs {
    /// The queue's key
    queue: String,
    /// The id of a message that is not running and has not ended
    id: String,
    /// Now
    #[arg(long)]
    now: bool,
    /// From now: 10s, 5m, 2h, 1d
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    delay: Option<Millis>,
    /// At a time: 2026-11-20T12:00 (UTC), or Unix milliseconds
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    at: Option<Millis>,
}

/// Options of `dq update`.
#[derive(Debug, clap::Args)]
pub struct UpdateArgs {
    /// The queue's key
    queue: String,
    /// The id of a message that is not running and has not ended
    id: String,
    /// The new payload; `-`, or nothing: all of the standard input
    payload: Option<String>,
}

/// Options of `dq signal`.
#[derive(Debug, clap::Args)]
pub struct SignalArgs {
    /// The queue's key
    queue: String,
    /// The id of a message that has not ended
    id: String,
    /// The text that its next delivery gets; `-`: all of the standard input
    data: Option<String>,
}

/// Cancels messages, and prints in which state each was. Fails if one of them is unknown.
pub fn cancel(server: &mut Server, args: &CancelArgs, out: &mut Output) -> Result<(), Failure> {
    must_exist(server, &args.queue)?;
    let mut cmd = verb("DQ.CANCEL", args.queue.as_bytes());
    cmd.arg(&args.ids);
    let reply = call(server, &args.queue, &cmd)?;
    let Value::Array(states) = reply else {
        return Err(unexpected());
    };
    if out.json {
        let states: Vec<_> = states.iter().map(crate::json::of).collect();
        let ids = args.ids.iter().zip(states);
        let shown = ids.map(|(id, state)| json!({ "id": id, "was": state }));
        return out.json(&shown.collect());
    }
    let mut unknown = 0;
    for (id, state) in args.ids.iter().zip(&states) {
        let id = printable(id.as_bytes());
        match bytes(state) {
            None => {
                unknown += 1;
                out.line(&format!("{id}: no such message"))?;
            }
            Some(state @ (b"finished" | b"cancelled")) => {
                out.line(&format!("{id}: was {} before", printable(state)))?;
            }
            Some(state) => out.line(&format!("{id}: was {}, is cancelled", printable(state)))?,
        }
    }
    match unknown {
        0 => Ok(()),
        _ => Err(Failure::mistake(format!(
            "{}: {unknown} of the messages are unknown",
            printable(args.queue.as_bytes())
        ))),
    }
}

/// Gives a message another due time.
pub fn reschedule(
    server: &mut Server,
    args: &RescheduleArgs,
    out: &mut Output,
) -> Result<(), Failure> {
    must_exist(server, &args.queue)?;
    let mut cmd = verb("DQ.RESCHEDULE", args.queue.as_bytes());
    cmd.arg(&args.id);
    match args.at {
        Some(at) => cmd.arg("AT").arg(at),
        None => cmd.arg("DELAY").arg(args.delay.unwrap_or(0)),
    };
    one(server, &cmd, &args.queue, &args.id, "rescheduled", out)
}

/// Gives a message another payload.
pub fn update(server: &mut Server, args: &UpdateArgs, out: &mut Output) -> Result<(), Failure> {
    must_exist(server, &args.queue)?;
    let mut cmd = verb("DQ.UPDATE", args.queue.as_bytes());
    cmd.arg(&args.id).arg(payload(args.payload.as_deref())?);
    one(server, &cmd, &args.queue, &args.id, "updated", out)
}

/// Sends a signal to a message.
pub fn signal(server: &mut Server, args: &SignalArgs, out: &mut Output) -> Result<(), Failure> {
    must_exist(server, &args.queue)?;
    let mut cmd = verb("DQ.SIGNAL", args.queue.as_bytes());
    cmd.arg(&args.id);
    if let Some(data) = &args.data {
        cmd.arg("DATA").arg(payload(Some(data))?);
    }
    let reply = call(server, &args.queue, &cmd)?;
    let id = printable(args.id.as_bytes());
    match integer(&reply)? {
        0 => Err(Failure::mistake(format!(
            "{id} has ended or does not exist: nothing was changed"
        ))),
        _ if out.json => out.json(&json!({ "signalled": id })),
        _ => out.line(&format!("{id}: signalled")),
    }
}

/// Runs a change of one message, which the server answers by 1 or 0.
fn one(
    server: &mut Server,
    cmd: &redis::Cmd,
    queue: &str,
    id: &str,
    done: &str,
    out: &mut Output,
) -> Result<(), Failure> {
    let reply = call(server, queue, cmd)?;
    let id = printable(id.as_bytes());
    match integer(&reply)? {
        0 => Err(Failure::mistake(format!(
            "{id} is running, has ended or does not exist: nothing was changed"
        ))),
        _ if out.json => out.json(&json!({ done: id })),
        _ => out.line(&format!("{id}: {done}")),
    }
}
