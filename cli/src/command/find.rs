//! `dq find`: the messages of a state to which conditions apply, and an action on them.

use serde_json::json;

use super::ask::{confirm, is_terminal};
use super::options::parse_header;
use super::{about, must_exist, target};
use crate::failure::Failure;
use crate::model::count;
use crate::model::error_text::summary;
use crate::model::find::{self, Act, Filter, Step};
use crate::model::queue::STATES;
use crate::model::record::Record;
use crate::output::Output;
use crate::server::Server;
use crate::table::Table;
use crate::text::{cut, plural, printable};
use crate::time_text::{parse_moment, stamp, Millis};

/// Number of messages that the server looks at in one step. Others are served between
/// two steps.
const STEP: usize = 500;

/// The conditions.
#[derive(Debug, clap::Args)]
pub struct Conditions {
    /// Only ids that match, as of KEYS: 'order-7-*'
    #[arg(long, value_name = "GLOB")]
    id: Option<String>,
    /// Only messages of this type
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Only messages of this group
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,
    /// Only messages of this batch
    #[arg(long, value_name = "BATCH")]
    batch: Option<String>,
    /// Only children of the message with this id in that queue
    #[arg(long, num_args = 2, value_names = ["QUEUE", "ID"])]
    parent: Option<Vec<String>>,
    /// Only messages with this header
    #[arg(long, value_name = "FIELD=VALUE", value_parser = parse_header)]
    header: Option<(String, String)>,
    /// Only messages whose last error matches: 'HTTP 5*'
    #[arg(long, value_name = "GLOB")]
    error: Option<String>,
    /// Only messages whose payload matches, up to its first 64 KiB
    #[arg(long, value_name = "GLOB")]
    payload: Option<String>,
    /// Only messages whose time is at or after this: 2026-11-20T12:00:00Z, Unix ms, or 2h (ago).
    /// It is the time that orders the state, such as when a dead message died
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    since: Option<Millis>,
    /// Only messages whose time is before this
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    until: Option<Millis>,
}

impl Conditions {
    /// Returns the filter of these conditions and a state.
    pub fn filter(&self, state: &str) -> Result<Filter, Failure> {
        let bytes = |text: &Option<String>| text.clone().map(String::into_bytes);
        let header = self.header.clone();
        Ok(Filter {
            id: bytes(&self.id),
            kind: bytes(&self.kind),
            group: bytes(&self.group),
            batch: bytes(&self.batch),
            parent: self.parent.as_deref().and_then(pair),
            header: header.map(|(field, value)| (field.into_bytes(), value.into_bytes())),
            error: bytes(&self.error),
            payload: bytes(&self.payload),
            since: self.since,
            until: self.until,
            ..Filter::of_state(state)?
        })
    }
}

/// Returns the two words of an option as bytes.
fn pair(words: &[String]) -> Option<(Vec<u8>, Vec<u8>)> {
    let [first, second] = words else {
        return None;
    };
    Some((first.clone().into_bytes(), second.clone().into_bytes()))
}

/// Options of `dq find`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The queue's key
    queue: String,
    /// The state of the messages
    #[arg(value_parser = STATES)]
    state: String,
    /// QUEUE names a family: look into all its queues
    #[arg(long)]
    family: bool,
    #[command(flatten)]
    conditions: Conditions,
    /// Begin with the newest
    #[arg(long)]
    newest: bool,
    /// How many messages at most are printed, or with --act changed
    #[arg(short = 'n', long, value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Print their number only
    #[arg(long = "tally", conflicts_with = "act")]
    tally: bool,
    /// Do this with all that are found
    #[arg(long, value_name = "ACT", value_parser = ["redrive", "cancel", "purge"])]
    act: Option<String>,
    /// With --act: all messages of the state, though there is no condition
    #[arg(long, requires = "act")]
    all: bool,
    /// With --act: do not ask
    #[arg(short, long, requires = "act")]
    yes: bool,
    /// How many columns of a payload are printed in the table
    #[arg(long, default_value_t = 40)]
    width: usize,
}

/// Number of messages that are printed without --count.
const PRINTED: u64 = 50;

/// Finds, and prints or acts.
pub fn run(server: &mut Server, args: &Args, out: &mut Output) -> Result<(), Failure> {
    let filter = args.conditions.filter(&args.state)?;
    if !args.family {
        must_exist(server, &args.queue)?;
    }
    let queues = target(&args.queue, args.family)
        .queues(server)
        .map_err(|failure| about(&args.queue, failure))?;
    if let Some(act) = args.act.as_deref().and_then(Act::of) {
        return change(server, &queues, &filter, act, args, out);
    }
    if args.tally {
        let mut found = 0;
        walk(server, &queues, args, |server, queue, step| {
            let (next, count) = find::count(server, queue, &filter, step)?;
            found += count;
            Ok((next, u64::MAX))
        })?;
        return match out.json {
            true => out.json(&json!({ "found": found })),
            false => out.line(&found.to_string()),
        };
    }
    let mut messages: Vec<(Vec<u8>, Record)> = Vec::new();
    let most = args.count.unwrap_or(PRINTED);
    let more = walk(server, &queues, args, |server, queue, step| {
        let mut step = step.clone();
        if filter.is_whole_state() {
            // The step finds each message that it looks at.
            step.count = step.count.min(most as usize);
        }
        let (next, found) = find::messages(server, queue, &filter, &step)?;
        messages.extend(found.into_iter().map(|message| (queue.to_vec(), message)));
        Ok((next, most.saturating_sub(messages.len() as u64)))
    })?;
    let more = more || messages.len() as u64 > most;
    messages.truncate(most as usize);
    if out.json {
        let shown = messages.iter().map(|(queue, message)| {
            let mut fields = crate::json::map(message.fields());
            if let (true, Some(fields)) = (args.family, fields.as_object_mut()) {
                fields.insert("queue".to_owned(), crate::json::name(queue));
            }
            fields
        });
        return out.json(&shown.collect());
    }
    if messages.is_empty() {
        return out.line(&format!("no such messages: {}", filter.words()));
    }
    print(&messages, args, out)?;
    match more {
        true => out.line("... there may be more: --count shows them"),
        false => Ok(()),
    }
}

fn change(
    server: &mut Server,
    queues: &[Vec<u8>],
    filter: &Filter,
    act: Act,
    args: &Args,
    out: &mut Output,
) -> Result<(), Failure> {
    if !act.fits(&filter.state) {
        return Err(Failure::mistake(format!(
            "{} does nothing to messages that are {}",
            act.word(),
            filter.state
        )));
    }
    if filter.is_whole_state() && !args.all {
        return Err(Failure::mistake(format!(
            "without a condition, {} --all is needed: it is about all {} messages",
            act.word(),
            filter.state
        )));
    }
    if !args.yes {
        // The count is only made for a terminal, because nobody reads it elsewhere.
        let count = match is_terminal() {
            true => count::count(server, queues, filter)?.words(),
            false => "messages".to_owned(),
        };
        let shown = target(&args.queue, args.family).shown();
        let most = args.count.map(|count| format!(", at most {count}"));
        let most = most.unwrap_or_default();
        let question = format!(
            "{} {count} of {shown}: {}{most}?",
            capital(act),
            filter.words()
        );
        confirm(&question, false)?;
    }
    let mut changed = 0;
    walk(server, queues, args, |server, queue, step| {
        let left = args.count.map_or(u64::MAX, |count| count - changed);
        let step = Step {
            count: step.count.min(usize::try_from(left).unwrap_or(usize::MAX)),
            ..step.clone()
        };
        let (next, more) = find::act(server, queue, filter, &step, act)?;
        changed += more;
        Ok((next, left.saturating_sub(more)))
    })?;
    match out.json {
        true => out.json(&json!({ act.word(): changed })),
        false => out.line(&format!("{} {}", plural(changed, "message"), act.done())),
    }
}

fn capital(act: Act) -> &'static str {
    match act {
        Act::Redrive => "Redrive",
        Act::Cancel => "Cancel",
        Act::Purge => "Purge",
    }
}

/// Goes over the queues in steps, until `visit` wants no more. It returns where the next
/// step goes on, and how many messages it still wants. Returns whether it has ended
/// before all was seen.
fn walk(
    server: &mut Server,
    queues: &[Vec<u8>],
    args: &Args,
    mut visit: impl FnMut(&mut Server, &[u8], &Step) -> Result<(Option<Vec<u8>>, u64), Failure>,
) -> Result<bool, Failure> {
    for (i, queue) in queues.iter().enumerate() {
        let mut step = Step::first(STEP);
        step.newest_first = args.newest;
        loop {
            let (next, wanted) =
                visit(server, queue, &step).map_err(|failure| about(&args.queue, failure))?;
            if wanted == 0 {
                return Ok(next.is_some() || i + 1 < queues.len());
            }
            match next {
                Some(cursor) => step.cursor = Some(cursor),
                None => break,
            }
        }
    }
    Ok(false)
}

fn print(messages: &[(Vec<u8>, Record)], args: &Args, out: &mut Output) -> Result<(), Failure> {
    let mut table = Table::new(&[
        "ID", "GROUP", "TYPE", ">ATTEMPT", "WHEN", "ERROR", "PAYLOAD",
    ]);
    for (_, message) in messages {
        let error = message.bytes("error").unwrap_or_default();
        let payload = message.bytes("payload").map(printable).unwrap_or_default();
        table.row(vec![
            message.text("id"),
            message.text("group"),
            message.text("type"),
            message.text("attempt"),
            when(message, &args.state).map(stamp).unwrap_or_default(),
            cut(&printable(summary(error)), args.width),
            cut(&payload, args.width),
        ]);
    }
    Ok(table.write(out.to)?)
}

/// Returns the time that orders the state, if DQ.GET has it.
fn when(message: &Record, state: &str) -> Option<Millis> {
    message.number(match state {
        "running" => "lease-until",
        "finished" | "dead" | "cancelled" => "finished-at",
        "held" => "sent-at",
        _ => "due-at",
    })
}
