//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::command::{
    batches, bench, children, completion, explain, find, limits, ls, message, pause, peek, purge,
    redrive, schedule, send, server, settings, show, tail, workers,
};
use crate::server::Endpoint;
use crate::takeover::args as takeover;
use crate::{exporter, sqs, top, torture, web};

/// See and steer the dq queues of a Redis or Valkey server.
#[derive(Debug, Parser)]
#[command(name = "dq", version, max_term_width = 100)]
pub struct Cli {
    /// Print JSON instead of tables, with the server's own field names and figures
    #[arg(long, global = true, display_order = 998)]
    pub json: bool,
    /// Show payloads and headers that clients have encrypted: a file with a line for each key, its id and
    /// its 32 bytes in base64
    #[arg(long, global = true, value_name = "FILE", display_order = 997)]
    pub secrets: Option<PathBuf>,
    /// The address of the server.
    #[command(flatten)]
    pub endpoint: Endpoint,
    /// The command to run.
    #[command(subcommand)]
    pub verb: Verb,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// A live view of all queues: rates, states, lateness, groups held and why
    Top(top::Args),
    /// List the queues, one line each
    Ls(ls::Args),
    /// Show everything about a queue, or about one message
    Show(show::Args),
    /// Find messages by id, type, group, batch, header, error, payload or time, and act on them
    Find(Box<find::Args>),
    /// List the consumers of all queues, and what each of them holds for how long
    Workers(workers::Args),
    /// List the open batches of a queue, and what waits for them
    Batches(batches::Args),
    /// List the children of a message, and what has become of them
    Children(children::Args),
    /// List the limits with names of a queue, and what is used of them
    Limits(limits::Args),
    /// Tell why a message is not delivered now, and what that waits for
    Explain(explain::Args),
    /// Show what would be delivered next, without taking it
    Peek(peek::Args),
    /// Follow a queue: messages as they end, or its events
    Tail(tail::Args),
    /// Send a message, or one for each line of the standard input
    Send(Box<send::Args>),
    /// End messages by their ids, so that they are not delivered any more
    Cancel(message::CancelArgs),
    /// Give a message another due time, or let it be due now
    Reschedule(message::RescheduleArgs),
    /// Give a message another payload
    Update(message::UpdateArgs),
    /// Send a signal to a message that waits for one
    Signal(message::SignalArgs),
    /// Remove messages for good, by state or group, or all
    Purge(purge::Args),
    /// Let dead messages run again
    Redrive(redrive::Args),
    /// Stop deliveries from a queue or of one group; everything else goes on
    Pause(pause::PauseArgs),
    /// Go on with deliveries
    Resume(pause::ResumeArgs),
    /// Make a queue, with its options
    Create(settings::CreateArgs),
    /// Change options of a queue
    Alter(settings::AlterArgs),
    /// Limit the messages that name a limit, or remove it
    Limit(limits::SetArgs),
    /// Let the server send a message at times of a rule
    Schedule(Box<schedule::ScheduleArgs>),
    /// List the schedules of a queue, or pause or resume one
    Schedules(schedule::SchedulesArgs),
    /// Remove a schedule
    Unschedule(schedule::UnscheduleArgs),
    /// Measure a send, fetch and ack loop in a queue of its own, for a quick look
    Bench(bench::Args),
    /// Run a Valkey or Redis server with dq, for good or for a test
    Server(Box<server::Args>),
    /// Take over the jobs of a running queue of another system, or undo that
    Import(Box<takeover::ImportArgs>),
    /// Write the messages of queues as lines of JSON, which `dq import jsonl` reads
    Export(takeover::ExportArgs),
    /// Serve all of it as web pages: see, find, redrive, pause
    Web(Box<web::Args>),
    /// Serve the queues to clients of Amazon SQS
    Sqs(Box<sqs::Args>),
    /// Serve the figures of the queues to Prometheus
    Exporter(exporter::Args),
    /// Try on this disk and kernel what a server with dq keeps when it is killed, loses its power, or fails over
    Torture(torture::Args),
    /// Print the completion script of a shell
    Completion(completion::Args),
    /// Write the manual pages
    #[command(hide = true)]
    Man(completion::ManArgs),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn clap_accepts_the_definition() {
        Cli::command().debug_assert();
    }
}
