//! `dq pause` and `dq resume`.

use serde_json::json;

use super::{about, must_exist, target};
use crate::failure::Failure;
use crate::model::change::{Change, Target};
use crate::output::Output;
use crate::server::Server;
use crate::time_text::{parse_interval, Millis};

/// The thing that is paused or resumed.
#[derive(Debug, clap::Args)]
struct What {
    /// The queue's key
    queue: String,
    /// Only this group of the queue
    #[arg(short, long)]
    group: Option<String>,
    /// QUEUE names a family: all its queues
    #[arg(long, conflicts_with = "group")]
    family: bool,
}

impl What {
    fn target(&self) -> Target {
        target(&self.queue, self.family)
    }

    fn group(&self) -> Option<Vec<u8>> {
        self.group.clone().map(String::into_bytes)
    }

    /// Makes the change, and prints it.
    fn change(
        &self,
        server: &mut Server,
        change: &Change,
        json: serde_json::Value,
        out: &mut Output,
    ) -> Result<(), Failure> {
        if !self.family {
            must_exist(server, &self.queue)?;
        }
        change
            .execute(server)
            .map_err(|failure| about(&self.queue, failure))?;
        match out.json {
            true => out.json(&json),
            false => out.line(&change.done(0)),
        }
    }
}

/// Options of `dq pause`.
#[derive(Debug, clap::Args)]
pub struct PauseArgs {
    #[command(flatten)]
    target: What,
    /// For how long: 500ms, 10s, 5m, 2h; without, until `dq resume`
    #[arg(long = "for", value_name = "TIME", value_parser = parse_interval)]
    time: Option<Millis>,
}

/// Options of `dq resume`.
#[derive(Debug, clap::Args)]
pub struct ResumeArgs {
    #[command(flatten)]
    target: What,
}

/// Pauses.
pub fn pause(server: &mut Server, args: &PauseArgs, out: &mut Output) -> Result<(), Failure> {
    let what = &args.target;
    let change = Change::Pause(what.target(), what.group(), args.time);
    let json = json!({ "paused": true, "for": args.time });
    what.change(server, &change, json, out)
}

/// Resumes.
pub fn resume(server: &mut Server, args: &ResumeArgs, out: &mut Output) -> Result<(), Failure> {
    let what = &args.target;
    let change = Change::Resume(what.target(), what.group());
    what.change(server, &change, json!({ "paused": false }), out)
}
