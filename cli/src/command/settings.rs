//! `dq create` and `dq alter`: the options of a queue.

use super::call;
use crate::failure::Failure;
use crate::model::option_words::words;
use crate::output::Output;
use crate::server::{verb, Server};
use crate::text::printable;

/// Options of `dq create`.
#[derive(Debug, clap::Args)]
pub struct CreateArgs {
    /// The queue's key
    queue: String,
    /// Options of DQ.CREATE, with times as 30s, 5m, 2h or 1d: lease 30s retries 5 backoff EXP 1s
    #[arg(value_name = "OPTION VALUE", allow_hyphen_values = true)]
    options: Vec<String>,
}

/// Options of `dq alter`.
#[derive(Debug, clap::Args)]
pub struct AlterArgs {
    /// The queue's key
    queue: String,
    /// Options of DQ.ALTER, with times as 30s, 5m, 2h or 1d: lease 30s retries 5 backoff EXP 1s
    #[arg(
        value_name = "OPTION VALUE",
        required = true,
        allow_hyphen_values = true
    )]
    options: Vec<String>,
}

/// Makes a queue.
pub fn create(server: &mut Server, args: &CreateArgs, out: &mut Output) -> Result<(), Failure> {
    change(server, "DQ.CREATE", &args.queue, &args.options, "made", out)
}

/// Changes options of a queue.
pub fn alter(server: &mut Server, args: &AlterArgs, out: &mut Output) -> Result<(), Failure> {
    change(
        server,
        "DQ.ALTER",
        &args.queue,
        &args.options,
        "changed",
        out,
    )
}

fn change(
    server: &mut Server,
    name: &str,
    queue: &str,
    options: &[String],
    done: &str,
    out: &mut Output,
) -> Result<(), Failure> {
    let mut cmd = verb(name, queue.as_bytes());
    cmd.arg(words(options).map_err(Failure::mistake)?);
    call(server, queue, &cmd)?;
    match out.json {
        true => out.json(&serde_json::json!({ done: queue })),
        false => out.line(&format!("{} is {done}", printable(queue.as_bytes()))),
    }
}
