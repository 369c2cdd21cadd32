//! `dq import` and `dq export`: the jobs of a running queue of another system move into dq, and messages out of it.
//!
//! One engine knows the order in which nothing is lost or doubled: a job is claimed at its source (`lane`), written into
//! a ledger (`ledger`), sent in one step with the marker that says so (`sending`), and then deleted from the claim. `peer`
//! has one file for each system with what it keeps where; `lua` has the scripts.

pub mod args;
mod disk;
mod dry;
mod ends;
mod export;
mod fault;
mod jsonl;
mod keys;
mod lane;
mod ledger;
mod peer;
mod pulse;
mod read;
mod record;
mod report;
mod run;
mod script;
mod sending;
mod stop;
mod undo;

pub use stop::Stop;

use args::{ExportArgs, From, ImportArgs};

use crate::failure::Failure;
use crate::output::Output;
use crate::server::Endpoint;

/// Runs `dq import`.
pub fn import(endpoint: &Endpoint, args: &ImportArgs, out: &mut Output) -> Result<(), Failure> {
    match args.peer {
        Some(From::Jsonl) => jsonl::run(endpoint, args, out),
        _ => run::run(endpoint, args, out),
    }
}

/// Runs `dq export`.
pub fn export(endpoint: &Endpoint, args: &ExportArgs, out: &mut Output) -> Result<(), Failure> {
    export::run(&mut endpoint.connect()?, args, out)
}
