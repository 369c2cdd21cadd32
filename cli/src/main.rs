//! `dq`: see and steer the dq queues of a Redis or Valkey server from a
//! terminal.
//!
//! Each layer uses only those before it: `bounds` (of numbers), `text` and `table` (what is printed),
//! `server` (the connection), `model` (replies of the server as values), `command`
//! (one file for each command that prints and ends), `top` (the live view), `web` (the
//! same and more as web pages), `sqs` (queues for clients of Amazon SQS), `exporter` (figures for Prometheus), `takeover` (queues of other systems),
//! `torture` (a proof on the disk of the user).

mod args;
mod bounds;
mod command;
mod data_folder;
mod exporter;
mod failure;
mod glob;
mod json;
mod model;
mod output;
mod secret;
mod server;
mod sqs;
mod table;
mod takeover;
mod text;
mod time_text;
mod top;
mod torture;
mod web;

use std::io;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use args::{Cli, Verb};
use command::{
    batches, bench, children, completion, explain, find, limits, ls, message, pause, peek, purge,
    redrive, schedule, send, server as run_server, settings, show, tail, workers,
};
use failure::Failure;
use model::coded::Keys;
use output::Output;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of the pipe has ended, as in `dq ls | head`.
        Err(failure) if failure.is_closed_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("dq: {failure}");
            match failure {
                Failure::Stayed(_) => ExitCode::from(3),
                _ => ExitCode::FAILURE,
            }
        }
    }
}

/// Runs the command of the command line.
fn run(cli: &Cli) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    let out = &mut Output {
        to: &mut stdout,
        json: cli.json,
    };
    if let Some(path) = &cli.secrets {
        Keys::read(path)?.use_them();
    }
    let connect = || cli.endpoint.connect();
    match &cli.verb {
        Verb::Top(args) => top::run(&cli.endpoint, args),
        Verb::Ls(args) => ls::run(&mut connect()?, args, out),
        Verb::Show(args) => show::run(&mut connect()?, args, out),
        Verb::Find(args) => find::run(&mut connect()?, args, out),
        Verb::Workers(args) => workers::run(&mut connect()?, args, out),
        Verb::Batches(args) => batches::run(&mut connect()?, args, out),
        Verb::Children(args) => children::run(&mut connect()?, args, out),
        Verb::Limits(args) => limits::run(&mut connect()?, args, out),
        Verb::Limit(args) => limits::set(&mut connect()?, args, out),
        Verb::Explain(args) => explain::run(&mut connect()?, args, out),
        Verb::Peek(args) => peek::run(&mut connect()?, args, out),
        Verb::Tail(args) => tail::run(&mut connect()?, args, out),
        Verb::Redrive(args) => redrive::run(&mut connect()?, args, out),
        Verb::Pause(args) => pause::pause(&mut connect()?, args, out),
        Verb::Resume(args) => pause::resume(&mut connect()?, args, out),
        Verb::Bench(args) => bench::run(&mut connect()?, args, out),
        Verb::Server(args) => run_server::run(args, out),
        Verb::Send(args) => send::run(&mut connect()?, args, out),
        Verb::Cancel(args) => message::cancel(&mut connect()?, args, out),
        Verb::Reschedule(args) => message::reschedule(&mut connect()?, args, out),
        Verb::Update(args) => message::update(&mut connect()?, args, out),
        Verb::Signal(args) => message::signal(&mut connect()?, args, out),
        Verb::Purge(args) => purge::run(&mut connect()?, args, out),
        Verb::Create(args) => settings::create(&mut connect()?, args, out),
        Verb::Alter(args) => settings::alter(&mut connect()?, args, out),
        Verb::Schedule(args) => schedule::schedule(&mut connect()?, args, out),
        Verb::Schedules(args) => schedule::schedules(&mut connect()?, args, out),
        Verb::Unschedule(args) => schedule::unschedule(&mut connect()?, args, out),
        Verb::Import(args) => takeover::import(&cli.endpoint, args, out),
        Verb::Export(args) => takeover::export(&cli.endpoint, args, out),
        Verb::Web(args) => web::run(&cli.endpoint, args, out),
        Verb::Sqs(args) => sqs::run(&cli.endpoint, args, out),
        Verb::Exporter(args) => exporter::run(&cli.endpoint, args, out),
        Verb::Torture(args) => torture::run(args, out),
        Verb::Completion(args) => completion::run(Cli::command(), args, out),
        Verb::Man(args) => completion::man(Cli::command(), args),
    }
}
