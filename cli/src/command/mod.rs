//! The commands that print and end, one file each.

pub mod batches;
pub mod bench;
pub mod explain;
pub mod find;
pub mod ls;
pub mod pause;
pub mod peek;
pub mod redrive;
pub mod show;
pub mod tail;

use std::io::{self, Write};

use crate::args::{Cli, Verb};
use crate::failure::Failure;
use crate::model::deed::Target;
use crate::server::Server;
use crate::text::printable;
use crate::{top, web};

/// The output of a command.
pub struct Output<'a> {
    /// The stream.
    pub to: &'a mut dyn Write,
    /// Whether to print JSON.
    pub json: bool,
}

impl Output<'_> {
    /// Prints one line of text.
    pub fn line(&mut self, text: &str) -> Result<(), Failure> {
        Ok(writeln!(self.to, "{text}")?)
    }

    /// Prints a JSON value on one line.
    pub fn json(&mut self, value: &serde_json::Value) -> Result<(), Failure> {
        self.line(&value.to_string())
    }
}

/// Runs the command of the command line.
pub fn run(cli: &Cli) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    let out = &mut Output {
        to: &mut stdout,
        json: cli.json,
    };
    let connect = || cli.endpoint.connect();
    match &cli.verb {
        Verb::Top(args) => top::run(&cli.endpoint, args),
        Verb::Ls(args) => ls::run(&mut connect()?, args, out),
        Verb::Show(args) => show::run(&mut connect()?, args, out),
        Verb::Find(args) => find::run(&mut connect()?, args, out),
        Verb::Batches(args) => batches::run(&mut connect()?, args, out),
        Verb::Explain(args) => explain::run(&mut connect()?, args, out),
        Verb::Peek(args) => peek::run(&mut connect()?, args, out),
        Verb::Tail(args) => tail::run(&mut connect()?, args, out),
        Verb::Redrive(args) => redrive::run(&mut connect()?, args, out),
        Verb::Pause(args) => pause::pause(&mut connect()?, args, out),
        Verb::Resume(args) => pause::resume(&mut connect()?, args, out),
        Verb::Bench(args) => bench::run(&mut connect()?, args, out),
        Verb::Web(args) => web::run(&cli.endpoint, args, out),
    }
}

/// Fails unless the queue exists. Several verbs would create it, or read a missing
/// queue as an empty one, and a mistyped name must not go unnoticed. Nothing is
/// checked if the user has no right to do so.
fn must_exist(server: &mut Server, queue: &str) -> Result<(), Failure> {
    match server.call(&crate::server::verb("DQ.INFO", queue.as_bytes())) {
        Err(failure) if !failure.is_forbidden() => Err(about(queue, failure)),
        _ => Ok(()),
    }
}

/// Puts the name of the queue before the words of a refusal.
fn about(queue: &str, failure: Failure) -> Failure {
    match failure {
        Failure::Refused(words) => {
            let words = words.strip_prefix("ERR ").unwrap_or(&words);
            Failure::Refused(format!("{}: {words}", printable(queue.as_bytes())))
        }
        other => other,
    }
}

/// Returns the queue or the family of this name.
fn target(name: &str, family: bool) -> Target {
    let name = name.as_bytes().to_vec();
    match family {
        true => Target::Family(name),
        false => Target::Queue(name),
    }
}
