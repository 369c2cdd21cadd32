//! The options of a message that is sent by hand or by a schedule.

use redis::{Cmd, ToRedisArgs};

use crate::model::settings;
use crate::time_text::{parse_interval, parse_span, Millis};

/// The options that a message has, whoever sends it.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Message")]
pub struct MessageOptions {
    /// Its type, a label of yours
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Its group
    #[arg(long)]
    group: Option<String>,
    /// Its place in the group, a number
    #[arg(long, requires = "group", allow_hyphen_values = true)]
    score: Option<String>,
    /// Its priority: -128 to 127, lower goes first
    #[arg(long, allow_hyphen_values = true)]
    priority: Option<i8>,
    /// A header; as often as you like
    #[arg(long, value_name = "FIELD=VALUE", value_parser = parse_header)]
    header: Vec<(String, String)>,
    /// Its batch
    #[arg(long)]
    batch: Option<String>,
    /// Hold it until this batch has ended
    #[arg(long, value_name = "BATCH")]
    after: Option<String>,
    /// The outcome for it when a message of that batch dies: HOLD, GO or DIE
    #[arg(long, requires = "after")]
    on_fail: Option<String>,
    /// Send it only if its group has a pending or running message
    #[arg(long, requires = "group")]
    if_group: bool,
    /// Hold it until a signal comes (`dq signal`), or for a time at most: --park=30d
    #[arg(long, value_name = "TIME", value_parser = parse_span, num_args = 0..=1, require_equals = true)]
    park: Option<Option<Millis>>,
    /// A limit that it needs room in; up to 8 times
    #[arg(long, value_name = "NAME")]
    limit: Vec<String>,
    /// How much the message takes of each limit
    #[arg(long, value_name = "N")]
    cost: Option<u64>,
    /// How long a consumer has for it: 30s, 5m
    #[arg(long, value_name = "TIME", value_parser = parse_interval)]
    lease: Option<Millis>,
    /// How many failures are forgiven; -1: all
    #[arg(long, allow_hyphen_values = true)]
    retries: Option<i64>,
    /// How many leases may end without an answer before it is dead
    #[arg(long, value_name = "N")]
    max_timeouts: Option<u64>,
    /// How many errors of its last failed attempts are kept: 0 to 100
    #[arg(long, value_name = "N")]
    errors: Option<u64>,
    /// The wait after a failure: 'EXP 1s', 'FIXED 1m', 'LINEAR 5s'
    #[arg(long, value_name = "KIND TIME", value_parser = parse_backoff)]
    backoff: Option<Words>,
    /// How long after its due time it is dead if it was not finished
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    ttl: Option<Millis>,
    /// How long its record is kept
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    retain: Option<Millis>,
}

/// Parses a header of the command line.
pub fn parse_header(text: &str) -> Result<(String, String), String> {
    let (field, value) = text
        .split_once('=')
        .ok_or("write a header as field=value")?;
    Ok((field.to_owned(), value.to_owned()))
}

/// The words of an option whose value has several.
#[derive(Debug, Clone)]
struct Words(Vec<String>);

fn parse_backoff(text: &str) -> Result<Words, String> {
    settings::field("backoff", text).map(Words)
}

/// Adds each option that was given to a command: its name, and its value.
pub fn add_given<T: ToRedisArgs, const N: usize>(cmd: &mut Cmd, options: [(&str, Option<T>); N]) {
    for (name, value) in options {
        if let Some(value) = value {
            cmd.arg(name).arg(value);
        }
    }
}

impl MessageOptions {
    /// Adds the options that were given to a command.
    pub fn add_to(&self, cmd: &mut Cmd) {
        let texts = [
            ("TYPE", &self.kind),
            ("GROUP", &self.group),
            ("SCORE", &self.score),
            ("BATCH", &self.batch),
            ("AFTER", &self.after),
            ("ONFAIL", &self.on_fail),
        ];
        add_given(cmd, texts.map(|(name, text)| (name, text.as_ref())));
        if self.if_group {
            cmd.arg("IFGROUP");
        }
        if let Some(priority) = self.priority {
            cmd.arg("PRIORITY").arg(i64::from(priority));
        }
        let numbers = [
            ("LEASE", self.lease),
            ("TTL", self.ttl),
            ("RETAIN", self.retain),
            ("MAXTIMEOUTS", self.max_timeouts),
            ("ERRORS", self.errors),
            ("COST", self.cost),
        ];
        add_given(cmd, numbers);
        if let Some(park) = self.park {
            cmd.arg("PARK");
            if let Some(most) = park {
                cmd.arg("FOR").arg(most);
            }
        }
        if !self.limit.is_empty() {
            cmd.arg("LIMITS").arg(self.limit.len()).arg(&self.limit);
        }
        if let Some(retries) = self.retries {
            cmd.arg("RETRIES").arg(retries);
        }
        if let Some(backoff) = &self.backoff {
            cmd.arg("BACKOFF").arg(&backoff.0);
        }
        if !self.header.is_empty() {
            cmd.arg("HEADERS").arg(self.header.len());
            for (field, value) in &self.header {
                cmd.arg(field).arg(value);
            }
        }
    }
}
