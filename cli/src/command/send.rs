//! `dq send`: sends a message, or one for each line of the standard input.

use std::io::{self, Read};

use redis::Value;
use serde_json::json;

use super::options::{add_given, MessageOptions};
use super::{about, call, must_exist};
use crate::failure::Failure;
use crate::model::record::{bytes, unexpected};
use crate::output::Output;
use crate::server::{verb, Server};
use crate::text::{plural, printable};
use crate::time_text::{parse_interval, parse_span, parse_time, Millis};

/// Number of messages of the standard input that are sent in one step.
const STEP: usize = 500;

/// Options of `dq send`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The queue's key
    queue: String,
    /// The payload; `-`, or nothing: all of the standard input
    payload: Option<String>,
    /// Send each line of the standard input as a message
    #[arg(long, conflicts_with_all = ["payload", "id", "replace"])]
    lines: bool,
    /// Its id, instead of a new one
    #[arg(long)]
    id: Option<String>,
    /// Take the place of the pending message of this id
    #[arg(long, requires = "id")]
    replace: bool,
    /// If the message of this id is running, send this one when that run has ended
    #[arg(long, requires = "replace")]
    rerun: bool,
    /// Send nothing if a message was sent with this deduplication id within the time after it
    #[arg(
        long,
        value_name = "ID",
        requires = "dedup_for",
        conflicts_with = "lines"
    )]
    dedup_id: Option<String>,
    /// How long the deduplication id counts from this send
    #[arg(long, value_name = "TIME", value_parser = parse_interval, requires = "dedup_id")]
    dedup_for: Option<Millis>,
    /// When it is due, from now: 10s, 5m, 2h, 1d
    #[arg(long, value_name = "TIME", value_parser = parse_span, conflicts_with = "at")]
    delay: Option<Millis>,
    /// When it is due: 2026-11-20T12:00 (UTC), or Unix milliseconds
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    at: Option<Millis>,
    /// With --replace: how long at most the messages that replace each other may put it off
    #[arg(long, value_name = "TIME", value_parser = parse_interval, requires = "replace")]
    max_wait: Option<Millis>,
    /// When it is dead if it was not finished: 2026-11-20T12:00 (UTC), or Unix milliseconds
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    expire_at: Option<Millis>,
    /// Hold it until this number of its children have ended
    #[arg(long, value_name = "N")]
    children: Option<u64>,
    /// The message of which it is a child, in this or another queue
    #[arg(long, num_args = 2, value_names = ["QUEUE", "ID"])]
    parent: Vec<String>,
    /// The outcome for its parent when it dies: HOLD, GO or DIE
    #[arg(long, requires = "parent")]
    on_dead: Option<String>,
    /// Make the queue if it does not exist
    #[arg(long)]
    new: bool,
    #[command(flatten)]
    options: MessageOptions,
}

impl Args {
    fn add_options(&self, cmd: &mut redis::Cmd) {
        if let Some(id) = &self.id {
            cmd.arg("ID").arg(id);
        }
        if self.replace {
            cmd.arg("REPLACE");
        }
        if self.rerun {
            cmd.arg("RERUN");
        }
        let numbers = [
            ("DELAY", self.delay),
            ("AT", self.at),
            ("MAXWAIT", self.max_wait),
            ("EXPIREAT", self.expire_at),
            ("CHILDREN", self.children),
        ];
        add_given(cmd, numbers);
        if let (Some(id), Some(ms)) = (&self.dedup_id, self.dedup_for) {
            cmd.arg("DEDUPID").arg(id).arg(ms);
        }
        if !self.parent.is_empty() {
            cmd.arg("PARENT").arg(&self.parent);
        }
        if let Some(on_dead) = &self.on_dead {
            cmd.arg("ONDEAD").arg(on_dead);
        }
        self.options.add_to(cmd);
    }
}

/// Sends, and prints the ids.
pub fn run(server: &mut Server, args: &Args, out: &mut Output) -> Result<(), Failure> {
    if !args.new {
        must_exist(server, &args.queue).map_err(|failure| match failure {
            Failure::Refused(words) if words.ends_with("no such queue") => {
                Failure::Refused(words + " (--new makes it)")
            }
            other => other,
        })?;
    }
    if args.lines {
        return lines(server, args, out);
    }
    let payload = payload(args.payload.as_deref())?;
    let mut cmd = verb("DQ.SEND", args.queue.as_bytes());
    cmd.arg(payload);
    args.add_options(&mut cmd);
    let reply = call(server, &args.queue, &cmd)?;
    let Some(id) = bytes(&reply) else {
        return Err(Failure::mistake(match &args.id {
            Some(_) => "the id is taken",
            None => "nothing was sent",
        }));
    };
    match out.json {
        true => out.json(&json!({ "id": crate::json::name(id) })),
        false => out.line(&printable(id)),
    }
}

/// Reads the payload of the command line, or the standard input.
pub fn payload(given: Option<&str>) -> Result<Vec<u8>, Failure> {
    match given {
        None | Some("-") => {
            let mut payload = Vec::new();
            io::stdin().lock().read_to_end(&mut payload)?;
            Ok(payload)
        }
        Some(text) => Ok(text.as_bytes().to_vec()),
    }
}

fn lines(server: &mut Server, args: &Args, out: &mut Output) -> Result<(), Failure> {
    let text = payload(None)?;
    let text = text.strip_suffix(b"\n").unwrap_or(&text);
    let lines: Vec<&[u8]> = match text.is_empty() {
        true => Vec::new(),
        false => text.split(|byte| *byte == b'\n').collect(),
    };
    let mut sent = 0;
    for chunk in lines.chunks(STEP) {
        let mut cmd = verb("DQ.MSEND", args.queue.as_bytes());
        cmd.arg(chunk.len()).arg(chunk);
        args.add_options(&mut cmd);
        let reply = server.call(&cmd).map_err(|failure| {
            let failure = about(&args.queue, failure);
            match sent {
                0 => failure,
                _ => Failure::mistake(format!("after {}: {failure}", plural(sent, "message"))),
            }
        })?;
        let Value::Array(ids) = reply else {
            return Err(unexpected());
        };
        sent += ids.len() as u64;
    }
    match out.json {
        true => out.json(&json!({ "sent": sent })),
        false => out.line(&format!("{} sent", plural(sent, "message"))),
    }
}
