//! `dq explain`: why a message is not delivered now.

use super::{call, must_exist};
use crate::failure::Failure;
use crate::model::group::Why;
use crate::model::record::Record;
use crate::output::Output;
use crate::server::{verb, Server};
use crate::text::printable;
use crate::time_text::{relative, stamp};

/// Options of `dq explain`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The queue's key
    queue: String,
    /// The message's id
    id: String,
}

/// Prints the explanation.
pub fn run(server: &mut Server, args: &Args, out: &mut Output) -> Result<(), Failure> {
    let mut cmd = verb("DQ.EXPLAIN", args.queue.as_bytes());
    cmd.arg(&args.id);
    let reply = call(server, &args.queue, &cmd)?;
    if out.json && reply != redis::Value::Nil {
        return out.json(&crate::json::of(&reply));
    }
    let Some(answer) = Why::of(reply)? else {
        must_exist(server, &args.queue)?;
        let id = printable(args.id.as_bytes());
        return Err(Failure::mistake(format!("no message with the id {id}")));
    };
    out.line(&format!("{}: {}", answer.code, answer.why))?;
    if let Some(until) = answer.until {
        // The times follow the queue's clock, which does not move by itself in a MANUAL queue.
        let info = server.call(&verb("DQ.INFO", args.queue.as_bytes()));
        let now = info
            .ok()
            .and_then(|info| Record::of(info).ok()?.number("now"));
        match now {
            Some(now) => out.line(&format!(
                "until {} ({})",
                stamp(until),
                relative(until, now)
            ))?,
            None => out.line(&format!("until {}", stamp(until)))?,
        }
    }
    match answer.by.is_empty() {
        true => Ok(()),
        false => out.line(&format!("by {}", answer.by)),
    }
}
