//! `dq show`: everything about a queue, or about one message.

use redis::Value;
use serde_json::json;

use super::ls::{self, sum_json};
use super::{about, call, must_exist, schedule};
use crate::failure::Failure;
use crate::model::group::{self, Wanted, Why};
use crate::model::overview::Sort;
use crate::model::record::{shown, Record};
use crate::model::{attempts, batch, coded, family};
use crate::output::Output;
use crate::server::{verb, Server};
use crate::table::Table;
use crate::text::printable;
use crate::time_text::{exact, relative, span, stamp, Millis};

/// Maximum number of held groups that are printed.
const GROUPS: usize = 20;

/// Maximum number of open batches that are printed.
const BATCHES: usize = 20;

/// Options of `dq show`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The queue's key
    queue: String,
    /// The id of one of its messages
    id: Option<String>,
    /// QUEUE names a family: its sums over all servers, and its queues
    #[arg(long, conflicts_with = "id")]
    family: bool,
}

/// Prints the queue or the message.
pub fn run(server: &mut Server, args: &Args, out: &mut Output) -> Result<(), Failure> {
    match &args.id {
        None if args.family => family(server, &args.queue, out),
        Some(id) => message(server, &args.queue, id, out),
        None => queue(server, &args.queue, out),
    }
}

fn message(server: &mut Server, queue: &str, id: &str, out: &mut Output) -> Result<(), Failure> {
    let mut cmd = verb("DQ.GET", queue.as_bytes());
    cmd.arg(id);
    let reply = call(server, queue, &cmd)?;
    let now = server.call(&verb("DQ.INFO", queue.as_bytes())).ok();
    let now = now.and_then(|info| Record::of(info).ok()?.number("now"));
    let Some(message) = Record::maybe(reply)? else {
        must_exist(server, queue)?;
        let id = printable(id.as_bytes());
        return Err(Failure::mistake(format!("no message with the id {id}")));
    };
    match out.json {
        true => out.json(&crate::json::map(message.fields())),
        false => {
            waiting(server, queue, &message, out)?;
            fields(&readable(queue.as_bytes(), message.clone()), now, out)?;
            failed(&message, now, out)
        }
    }
}

/// Returns a message with payload and headers as they were sent, or with the words that stand in their place.
fn readable(queue: &[u8], message: Record) -> Record {
    let payload = match coded::payload(queue, &message) {
        Ok(plain) => Value::BulkString(plain.into_owned()),
        Err(words) => Value::SimpleString(format!("({words})")),
    };
    let headers = coded::headers(queue, &message);
    let text = Value::SimpleString;
    let headers = headers
        .into_iter()
        .map(|(name, value)| (text(name), text(value)));
    coded::texts(queue, &message)
        .with("payload", payload)
        .with("headers", Value::Map(headers.collect()))
}

/// Prints why a message is not delivered now, such as a pause of its queue.
fn waiting(
    server: &mut Server,
    queue: &str,
    message: &Record,
    out: &mut Output,
) -> Result<(), Failure> {
    if message.text("status") != "pending" {
        return Ok(());
    }
    let mut cmd = verb("DQ.EXPLAIN", queue.as_bytes());
    cmd.arg(message.bytes("id"));
    // A user who may not run DQ.EXPLAIN still sees the message.
    let why = server.call(&cmd).ok().map(Why::of).transpose()?.flatten();
    match why {
        Some(why) => out.line(&format!("{:<18} {}: {}", "why", why.code, why.why)),
        None => Ok(()),
    }
}

/// Prints the errors of failed attempts, as far as the queue keeps them (ERRORS).
fn failed(message: &Record, now: Option<Millis>, out: &mut Output) -> Result<(), Failure> {
    for one in attempts::of(message) {
        out.line("")?;
        let when = now.map(|now| format!(" ({})", relative(one.at, now)));
        let by = match one.consumer.is_empty() {
            true => String::new(),
            false => format!(", at {}", printable(&one.consumer)),
        };
        let (number, at) = (one.number, stamp(one.at));
        out.line(&format!(
            "attempt {number} failed {at}{}{by}",
            when.unwrap_or_default()
        ))?;
        for line in one.error.split(|byte| *byte == b'\n') {
            out.line(&format!("  {}", printable(line)))?;
        }
    }
    Ok(())
}

fn family(server: &mut Server, name: &str, out: &mut Output) -> Result<(), Failure> {
    let key = name.as_bytes();
    let queues = family::queues(server, key).map_err(|failure| about(name, failure))?;
    let sum = family::sum(server, key).map_err(|failure| about(name, failure))?;
    if out.json {
        let names: Vec<_> = queues.iter().map(|name| crate::json::name(name)).collect();
        return out.json(&json!({ "sum": sum_json(key, &sum), "queues": names }));
    }
    let mut line = |field: &str, text: String| out.line(&format!("{field:<18} {text}"));
    line("queues", sum.queues.to_string())?;
    for (field, count) in &sum.counts {
        line(field, count.to_string())?;
    }
    let late = |at: Option<Millis>| at.map_or("-".to_owned(), span);
    line("oldest-ready-age", late(sum.oldest_ready_age))?;
    line("oldest-due-age", late(sum.oldest_due_age))?;
    for (field, at) in family::LATENESS.iter().zip(sum.lateness) {
        line(field, late(at))?;
    }
    out.line("")?;
    ls::list(server, &queues, false, Sort::Name, out)
}

fn queue(server: &mut Server, queue: &str, out: &mut Output) -> Result<(), Failure> {
    let key = queue.as_bytes();
    let info = server
        .call(&verb("DQ.INFO", key))
        .map_err(|failure| about(queue, failure))?;
    let cmds = [verb("DQ.CONSUMERS", key), verb("DQ.SCHEDULES", key)];
    let mut lists = server.pipeline(&cmds)?.into_iter();
    // A user who has no right to see the groups sees all other parts.
    let mut list = || {
        lists
            .next()
            .and_then(Result::ok)
            .unwrap_or(Value::Array(Vec::new()))
    };
    let (consumers, schedules) = (list(), list());
    if out.json {
        return out.json(&json!({
            "info": crate::json::of(&info),
            "consumers": crate::json::of(&consumers),
            "schedules": crate::json::of(&schedules),
        }));
    }
    let info = Record::of(info)?;
    let now = info.number("now");
    if info.flag("paused") {
        out.line(&format!(
            "{} is paused: nothing is delivered",
            printable(key)
        ))?;
        out.line("")?;
    }
    if held(server, key, now, out)? {
        out.line("")?;
    }
    fields(&info, now, out)?;
    if info.count("batches") > 0 {
        batches(server, key, out)?;
    }
    let relative_to = |record: &Record, field| {
        record
            .number(field)
            .zip(now)
            .map(|(at, now)| relative(at, now))
            .unwrap_or_default()
    };
    let mut table = Table::new(&[
        "CONSUMER",
        ">RUNNING",
        ">DELIVERED",
        ">ACKED",
        ">NACKED",
        "SEEN",
    ]);
    for one in Record::all(consumers)? {
        let mut row: Vec<_> = ["name", "running", "delivered", "acked", "nacked"]
            .map(|field| one.text(field))
            .into();
        row.push(relative_to(&one, "last-seen"));
        table.row(row);
    }
    section(&table, out)?;
    section(&schedule::table(&Record::all(schedules)?, now), out)
}

/// Prints the groups that are blocked or paused, and why. Returns whether there are any.
fn held(
    server: &mut Server,
    key: &[u8],
    now: Option<Millis>,
    out: &mut Output,
) -> Result<bool, Failure> {
    let groups = match group::fetch(server, key, Wanted::Held, GROUPS) {
        Err(failure) if failure.is_forbidden() => return Ok(false),
        groups => groups?,
    };
    if groups.found.is_empty() {
        return Ok(false);
    }
    let mut table = Table::new(&[
        "GROUP", ">WAITING", "HEAD", "STATE", "UNTIL", "BREAKER", "WHY",
    ]);
    for one in &groups.found {
        let why = one.why.as_ref();
        let until = why.and_then(|why| why.until).zip(now);
        table.row(vec![
            printable(&one.name),
            one.waiting.to_string(),
            one.head.as_deref().map(printable).unwrap_or_default(),
            one.state.clone(),
            until
                .map(|(until, now)| relative(until, now))
                .unwrap_or_default(),
            one.breaker_words(now.unwrap_or(0)),
            why.map(|why| format!("{}: {}", why.code, why.why))
                .unwrap_or_default(),
        ]);
    }
    table.write(out.to)?;
    out.rest(groups.more, GROUPS)?;
    Ok(true)
}

/// Prints the open batches.
fn batches(server: &mut Server, key: &[u8], out: &mut Output) -> Result<(), Failure> {
    let (batches, more) = match batch::fetch(server, key, BATCHES) {
        Err(failure) if failure.is_forbidden() => return Ok(()),
        batches => batches?,
    };
    let mut table = Table::new(&["BATCH", ">ENDED", ">OF", ">DEAD", ">HELD"]);
    for one in &batches {
        let (ended, all) = one.progress();
        let mut row = vec![printable(&one.name)];
        row.extend([ended, all, one.dead, one.held].map(|count| count.to_string()));
        table.row(row);
    }
    section(&table, out)?;
    out.rest(more, BATCHES)
}

fn section(table: &Table, out: &mut Output) -> Result<(), Failure> {
    if table.is_empty() {
        return Ok(());
    }
    out.line("")?;
    Ok(table.write(out.to)?)
}

/// Prints the fields of a record, one a line, with times in words.
fn fields(record: &Record, now: Option<Millis>, out: &mut Output) -> Result<(), Failure> {
    for (name, value) in record.fields() {
        let name = shown(name);
        // The failed attempts are printed below the fields.
        if name == "errors" && matches!(value, Value::Array(_)) {
            continue;
        }
        let text = match value {
            Value::Int(at) if is_time(&name) => match (u64::try_from(*at), now) {
                (Ok(at), Some(now)) if at != now => {
                    format!("{}  ({})", stamp(at), relative(at, now))
                }
                (Ok(at), _) => stamp(at),
                (Err(_), _) => at.to_string(),
            },
            // From a second on, units are easier to read.
            Value::Int(ms @ 1000..) if is_span(&name) => {
                let ms = u64::try_from(*ms).unwrap_or(0);
                format!("{ms}  ({})", exact(ms))
            }
            value => shown(value),
        };
        let text = if text.is_empty() { "-" } else { &text };
        out.line(&format!("{name:<18} {text}"))?;
    }
    Ok(())
}

fn is_span(field: &str) -> bool {
    let settings = [
        "lease",
        "maxbackoff",
        "ttl",
        "retain",
        "deadretain",
        "dedup",
    ];
    settings.contains(&field) || field.ends_with("-age") || field.starts_with("lateness-")
}

fn is_time(field: &str) -> bool {
    field.ends_with("-at") || matches!(field, "lease-until" | "open-until" | "now")
}
