//! `dq sqs`: queues for clients of Amazon SQS.
//!
//! `serve` has the connections, `request` and `query` read what comes, `signature` and `keys`
//! know who sends it. `gateway` brings each action to its file, and `xml` writes what the
//! JSON protocol does not. All that is to last is in the server of the queues: any number of
//! gateways may run, and any may die.

mod attributes;
mod batch;
mod delivery;
mod fault;
mod gateway;
mod handle;
mod keys;
mod lists;
mod message;
mod mover;
mod moves;
mod names;
mod params;
mod permission;
mod query;
mod queue;
mod receive;
mod request;
mod send;
mod serve;
mod settings;
mod settle;
mod signature;
mod store;
mod tags;
mod waits;
mod xml;

use std::path::PathBuf;
use std::sync::Arc;

use clap::Parser;
use redis::Value;

use crate::failure::Failure;
use crate::model::instance;
use crate::output::Output;
use crate::server::Endpoint;
use crate::web::Listen;
use gateway::Gateway;
use names::Names;
use serve::Door;
use store::Store;

/// Options of `dq sqs`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where to listen: HOST:PORT, or a PORT of this machine only
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9324", value_parser = Listen::parse)]
    listen: Listen,
    #[command(flatten)]
    names: Names,
    /// The keys that may come in. Each line of the file has an access key, its secret, rw or r,
    /// and the queues as globs: 'AKIAMAILS Zm9vYmFy rw mails-*'
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "anonymous",
        required_unless_present = "anonymous"
    )]
    keys: Option<PathBuf>,
    /// Let everybody in who reaches the address, which must be of this machine only
    #[arg(long)]
    anonymous: bool,
    /// Confirm a change when it is on the disk of the server (WAITAOF)
    #[arg(long)]
    durable: bool,
}

/// Lets this process have as many connections as the system allows it.
fn many_connections() {
    use rustix::process::{getrlimit, setrlimit, Resource};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // If it may not, it has fewer connections.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Serves the queues of a server on this machine, beside that server, to everybody on this
/// machine.
pub fn beside(server: u16, port: u16) {
    std::thread::spawn(move || {
        let words = [
            "sqs",
            "--anonymous",
            "--listen",
            &format!("127.0.0.1:{port}"),
        ];
        let mut err = std::io::stderr();
        let out = &mut Output {
            to: &mut err,
            json: false,
        };
        let args =
            Alone::try_parse_from(words).map_err(|error| Failure::mistake(error.to_string()));
        let ended = args.and_then(|alone| run(&Endpoint::local(server), &alone.args, out));
        if let Err(failure) = ended {
            eprintln!("dq sqs: {failure}");
        }
    });
}

/// The options without the rest of the command line.
#[derive(Debug, Parser)]
struct Alone {
    #[command(flatten)]
    args: Args,
}

/// Serves clients until the program is ended.
pub fn run(endpoint: &Endpoint, args: &Args, out: &mut Output) -> Result<(), Failure> {
    if args.anonymous && !args.listen.address.ip().is_loopback() {
        return Err(Failure::mistake(
            "this address can be reached from elsewhere: use --keys, --anonymous is for addresses \
             of this machine only",
        ));
    }
    let keys = args.keys.as_deref().map(keys::read).transpose()?;
    if let Some(mut server) = instance::first_look(endpoint)? {
        if args.durable && !server.nodes().is_empty() {
            return Err(Failure::mistake(
                "--durable is not for clusters: with appendfsync always a server confirms nothing \
                 before it is on disk",
            ));
        }
        let known = server.call(&store::cmd("COMMAND", ("INFO", "WAITAOF")))?;
        if args.durable && known == Value::Array(vec![Value::Nil]) {
            return Err(Failure::mistake(
                "--durable needs WAITAOF, which this server does not have: Valkey and Redis from \
                 7.2 on have it. With appendfsync always a server confirms nothing before it is on \
                 disk, also without --durable",
            ));
        }
    }
    many_connections();
    let store = Store::new(endpoint.clone(), args.durable);
    let gateway = Arc::new(Gateway::new(args.names.clone(), store));
    args.listen.serve("dq sqs", out, |listener| async {
        tokio::spawn(mover::run(Arc::clone(&gateway)));
        serve::serve(listener, Arc::new(Door { gateway, keys })).await;
    })
}
