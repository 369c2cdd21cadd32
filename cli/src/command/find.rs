//! `dq find`: the messages of queues to which conditions apply, and an action on them.

use serde_json::json;

use super::ask::{confirm, is_terminal};
use super::options::parse_header;
use super::{about, must_exist, target};
use crate::bounds;
use crate::failure::Failure;
use crate::model::change::Target;
use crate::model::coded;
use crate::model::count;
use crate::model::error_text::summary;
use crate::model::find::{self, Act, Filter, Step};
use crate::model::keys::is_pattern;
use crate::model::queue::STATES;
use crate::model::record::Record;
use crate::model::search::{self, Walk, ANY};
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

/// The words of states, and that of all.
const WORDS: [&str; STATES.len() + 1] = {
    let mut words = [ANY; STATES.len() + 1];
    let mut i = 0;
    while i < STATES.len() {
        words[i] = STATES[i];
        i += 1;
    }
    words
};

/// Options of `dq find`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The queue's key, or a pattern of the queues that are meant: '*'
    queue: String,
    /// The state of the messages, or any
    #[arg(value_parser = WORDS)]
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
    #[arg(short = 'n', long, value_parser = clap::value_parser!(u64).range(bounds::MANY.range()))]
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

impl Args {
    /// Returns the queues that are meant.
    fn target(&self) -> Target {
        match is_pattern(&self.queue) && !self.family {
            true => Target::Matching(self.queue.clone().into_bytes()),
            false => target(&self.queue, self.family),
        }
    }

    /// Returns the way over the queues.
    fn walk(&self, server: &mut Server, queues: &[Vec<u8>]) -> Result<Walk, Failure> {
        let places = search::places(server, queues, &self.state);
        let places = places.map_err(|failure| about(&self.queue, failure))?;
        let step = Step {
            newest_first: self.newest,
            ..Step::first(STEP)
        };
        Ok(Walk::new(places, step))
    }
}

/// Finds, and prints or acts.
pub fn run(server: &mut Server, args: &Args, out: &mut Output) -> Result<(), Failure> {
    let filter = args.conditions.filter(&args.state)?;
    let refused = |failure| about(&args.queue, failure);
    let target = args.target();
    if let Target::Queue(_) = target {
        must_exist(server, &args.queue)?;
    }
    let queues = target.queues(server).map_err(refused)?;
    let many = !matches!(target, Target::Queue(_));
    if let Some(act) = args.act.as_deref().and_then(Act::of) {
        return change(server, &queues, &filter, act, args, out);
    }
    if args.tally {
        let mut found = 0;
        let mut walk = args.walk(server, &queues)?;
        while let Some((place, step)) = walk.now() {
            let (next, count) = find::count(server, place, &filter, step).map_err(refused)?;
            found += count;
            walk.go_on(next);
        }
        return match out.json {
            true => out.json(&json!({ "found": found })),
            false => out.line(&found.to_string()),
        };
    }
    let most = args.count.unwrap_or(PRINTED);
    let mut messages: Vec<(Vec<u8>, Record)> = Vec::new();
    let mut more = false;
    if let Some(id) = search::whole_id(&filter) {
        messages = search::by_id(server, &queues, id)?.messages;
    } else {
        let mut walk = args.walk(server, &queues)?;
        while let Some((place, step)) = walk.now() {
            let mut step = step.clone();
            if filter.is_whole_state() {
                // The step finds each message that it looks at.
                step.count = step.count.min(most as usize);
            }
            let (next, found) = find::messages(server, place, &filter, &step).map_err(refused)?;
            messages.extend(
                found
                    .into_iter()
                    .map(|message| (place.queue.clone(), message)),
            );
            walk.go_on(next);
            if messages.len() as u64 >= most {
                more = walk.now().is_some();
                break;
            }
        }
    }
    let more = more || messages.len() as u64 > most;
    messages.truncate(most as usize);
    if out.json {
        let shown = messages.iter().map(|(queue, message)| {
            let mut fields = crate::json::map(message.fields());
            if let (true, Some(fields)) = (many, fields.as_object_mut()) {
                fields.insert("queue".to_owned(), crate::json::name(queue));
            }
            fields
        });
        return out.json(&shown.collect());
    }
    if messages.is_empty() {
        return out.line(&format!("no such messages: {}", filter.words()));
    }
    print(&messages, many, args, out)?;
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
            true => count::count(server, queues, filter, act)?.words(),
            false => "messages".to_owned(),
        };
        let shown = args.target().shown();
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
    let mut walk = args.walk(server, queues)?;
    while let Some((place, step)) = walk.now() {
        if !act.fits(place.state) {
            walk.go_on(None);
            continue;
        }
        let left = args.count.map_or(u64::MAX, |count| count - changed);
        let step = Step {
            count: step.count.min(usize::try_from(left).unwrap_or(usize::MAX)),
            ..step.clone()
        };
        let done = find::act(server, place, filter, &step, act);
        let (next, more) = done.map_err(|failure| about(&args.queue, failure))?;
        changed += more;
        walk.go_on(next);
        if left <= more {
            break;
        }
    }
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

fn print(
    messages: &[(Vec<u8>, Record)],
    many: bool,
    args: &Args,
    out: &mut Output,
) -> Result<(), Failure> {
    let columns = [
        "ID", "QUEUE", "STATE", "GROUP", "TYPE", ">ATTEMPT", "WHEN", "ERROR", "PAYLOAD",
    ];
    // A column whose cells are all the same is left out.
    let is_shown = |column: &str| match column {
        "QUEUE" => many,
        "STATE" => args.state == ANY,
        _ => true,
    };
    let headings: Vec<_> = columns
        .into_iter()
        .filter(|column| is_shown(column))
        .collect();
    let mut table = Table::new(&headings);
    for (queue, message) in messages {
        let error = message.bytes("error").unwrap_or_default();
        let payload = coded::line(queue, message);
        let cells = [
            message.text("id"),
            printable(queue),
            message.text("state"),
            message.text("group"),
            message.text("type"),
            message.text("attempt"),
            when(message).map(stamp).unwrap_or_default(),
            cut(&printable(summary(error)), args.width),
            cut(&payload, args.width),
        ];
        let cells = cells.into_iter().zip(columns);
        let shown = cells.filter(|(_, column)| is_shown(column));
        table.row(shown.map(|(cell, _)| cell).collect());
    }
    Ok(table.write(out.to)?)
}

/// Returns the time that orders the state of a message, if DQ.GET has it.
fn when(message: &Record) -> Option<Millis> {
    message.number(match message.text("state").as_str() {
        "running" => "lease-until",
        "finished" | "dead" | "cancelled" => "finished-at",
        "held" => "sent-at",
        _ => "due-at",
    })
}
