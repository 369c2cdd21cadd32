//! `dq`: see and steer the dq queues of a Redis or Valkey server from a
//! terminal.
//!
//! Each layer uses only those before it: `text` and `table` (what is printed),
//! `server` (the connection), `model` (replies of the server as values), `command`
//! (one file for each command that prints and ends), `top` (the live view), `web` (the
//! same and more as web pages).

mod args;
mod command;
mod failure;
mod json;
mod model;
mod moment;
mod server;
mod table;
mod text;
mod top;
mod web;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = args::Cli::parse();
    match command::run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of the pipe has ended, as in `dq ls | head`.
        Err(failure) if failure.is_closed_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("dq: {failure}");
            ExitCode::FAILURE
        }
    }
}
