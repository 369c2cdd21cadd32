//! `dq pause` and `dq resume`.

use redis::Cmd;
use serde_json::json;

use super::{about, must_exist, Output};
use crate::failure::Failure;
use crate::moment::{parse_span, span, Millis};
use crate::server::{verb, Server};
use crate::text::printable;

/// What is paused or resumed.
#[derive(Debug, clap::Args)]
struct Target {
    /// The queue's key
    queue: String,
    /// Only this group of the queue
    #[arg(short, long)]
    group: Option<String>,
}

impl Target {
    fn cmd(&self, name: &str) -> Cmd {
        let mut cmd = verb(name, self.queue.as_bytes());
        if let Some(group) = &self.group {
            cmd.arg("GROUP").arg(group);
        }
        cmd
    }

    fn words(&self) -> String {
        let queue = printable(self.queue.as_bytes());
        match &self.group {
            Some(group) => format!("group {} of {queue}", printable(group.as_bytes())),
            None => queue,
        }
    }

    fn send(&self, server: &mut Server, cmd: &Cmd) -> Result<(), Failure> {
        server
            .call(cmd)
            .map_err(|failure| about(&self.queue, failure))?;
        Ok(())
    }
}

/// Options of `dq pause`.
#[derive(Debug, clap::Args)]
pub struct PauseArgs {
    #[command(flatten)]
    target: Target,
    /// For how long: 500ms, 10s, 5m, 2h; without, until `dq resume`
    #[arg(long = "for", value_name = "TIME", value_parser = parse_span)]
    time: Option<Millis>,
}

/// Options of `dq resume`.
#[derive(Debug, clap::Args)]
pub struct ResumeArgs {
    #[command(flatten)]
    target: Target,
}

/// Pauses.
pub fn pause(server: &mut Server, args: &PauseArgs, out: &mut Output) -> Result<(), Failure> {
    must_exist(server, &args.target.queue)?;
    let mut cmd = args.target.cmd("DQ.PAUSE");
    if let Some(time) = args.time {
        cmd.arg("FOR").arg(time);
    }
    args.target.send(server, &cmd)?;
    if out.json {
        return out.json(&json!({ "paused": true, "for": args.time }));
    }
    let time = args
        .time
        .map(|time| format!(" for {}", span(time)))
        .unwrap_or_default();
    out.line(&format!("{} is paused{time}", args.target.words()))
}

/// Resumes.
pub fn resume(server: &mut Server, args: &ResumeArgs, out: &mut Output) -> Result<(), Failure> {
    must_exist(server, &args.target.queue)?;
    args.target.send(server, &args.target.cmd("DQ.RESUME"))?;
    match out.json {
        true => out.json(&json!({ "paused": false })),
        false => out.line(&format!("{} goes on", args.target.words())),
    }
}
