//! The command lines of `dq import` and `dq export`.

use std::path::PathBuf;

use clap::ValueEnum;

use crate::bounds;
use crate::time_text::{parse_interval, Millis};

/// The systems whose queues are taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum From {
    /// BullMQ on Redis; tried with 4.17.0, 5.81.5 and 6.7.0
    Bullmq,
    /// Bull on Redis; tried with 4.16.5
    Bull,
    /// Celery 5 on Redis, kombu's transport; tried with 5.4.0, 5.5.3, 5.6.3 and 5.7.0
    Celery,
    /// Laravel's queues on Redis; tried with 8.83
    Laravel,
    /// Dramatiq on Redis; tried with 2.2.1
    Dramatiq,
    /// The Go library HDT3213/delayqueue; tried with 1.1.2
    Delayqueue,
    /// A file of `dq export jsonl`
    Jsonl,
}

/// What becomes of the jobs that workers of the old queue have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RunningJobs {
    /// Wait until their workers have ended them
    Wait,
    /// Leave them to their workers
    Leave,
    /// As wait, and take those that are lost by the old queue's own rules
    Take,
}

/// What becomes of the jobs that have failed for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DeadJobs {
    /// Take them, with their errors and attempts
    Take,
    /// Leave them
    Leave,
}

/// Options of `dq import`.
#[derive(Debug, Clone, clap::Args)]
pub struct ImportArgs {
    /// The system whose queue it is
    #[arg(required_unless_present = "undo", conflicts_with = "undo")]
    pub peer: Option<From>,
    /// The server of the old queue, a URL as in --url; of jsonl the file, or - for the standard input
    #[arg(long, value_name = "URL")]
    pub from: String,
    /// The server with dq [default: that of --url]
    #[arg(long, value_name = "URL")]
    pub to: Option<String>,
    /// A queue by its old name, as often as need be; '*' for all
    #[arg(long, value_name = "NAME")]
    pub queue: Vec<String>,
    /// What the old keys begin with, where the application has changed it
    #[arg(long)]
    pub prefix: Option<String>,
    /// bullmq, bull: the major version of the keys, where both have used the queue
    #[arg(long, value_name = "N")]
    pub peer_version: Option<u64>,
    /// bullmq, bull: `maxStalledCount` of the workers, for --running take
    #[arg(long, value_name = "N", default_value = "1")]
    pub max_stalled: u64,
    /// delayqueue: the library uses UseHashTagKey
    #[arg(long)]
    pub hash_tag: bool,
    /// celery: `sep` of its transport options
    #[arg(long, default_value = "\u{6}\u{16}", hide_default_value = true)]
    pub sep: String,
    /// celery: `priority_steps` of its transport options
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "0,3,6,9",
        value_name = "N,N"
    )]
    pub priority_steps: Vec<u8>,
    /// celery: `visibility_timeout` of its transport options
    #[arg(long, value_name = "TIME", value_parser = parse_interval, default_value = "1h")]
    pub visibility_timeout: Millis,
    /// The key of the new queue; {queue} stands for its old name [default: that of dq's driver, or dq:{queue} in the same
    /// database]
    #[arg(long, value_name = "PATTERN")]
    pub into: Option<String>,
    /// Only show what would be moved, what would stay, and why
    #[arg(long, conflicts_with = "follow")]
    pub dry_run: bool,
    /// Go on until Ctrl-C or SIGTERM: old producers stay as they are
    #[arg(long, conflicts_with = "once")]
    pub follow: bool,
    /// End when nothing is left, which is the default
    #[arg(long)]
    pub once: bool,
    /// How many jobs a second at most
    #[arg(long, value_parser = clap::value_parser!(u64).range(bounds::MANY.range()))]
    pub rate: Option<u64>,
    /// Larger batches: other clients may wait up to 40 ms, and not 4
    #[arg(long)]
    pub fast: bool,
    /// The jobs that workers of the old queue have
    #[arg(long, value_enum, default_value = "wait")]
    pub running: RunningJobs,
    /// The jobs that have failed for good
    #[arg(long, value_enum, default_value = "take")]
    pub dead: DeadJobs,
    /// The file that keeps each job's exact bytes, for --undo [default: dq-import-PEER.ledger]
    #[arg(long, value_name = "FILE")]
    pub ledger: Option<PathBuf>,
    /// Put back what has not been delivered, as this ledger has it
    #[arg(long, value_name = "LEDGER")]
    pub undo: Option<PathBuf>,
}

/// The forms of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// One JSON object a line
    Jsonl,
}

/// Options of `dq export`.
#[derive(Debug, clap::Args)]
pub struct ExportArgs {
    /// The form
    pub form: Form,
    /// A queue, as often as need be
    #[arg(long, value_name = "KEY", required = true)]
    pub queue: Vec<String>,
    /// Only messages in this state, as often as need be [default: all but the ended]
    #[arg(long)]
    pub state: Vec<String>,
    /// Take each message out of its queue once the disk has its line. The output must be a file
    #[arg(long)]
    pub delete: bool,
}
