//! The figures and messages as JSON, for programs, and the actions of the forms.

use serde_json::{json, Map, Value as Json};

use super::action::Action;
use super::address::{filter, queue, target};
use super::answer::{Answer, Ask, HttpError};
use super::jobs::Job;
use super::query::Query;
use crate::bounds::{self, Bound};
use crate::failure::Failure;
use crate::json;
use crate::model::batch::{self, Batch};
use crate::model::errors;
use crate::model::find::{self, Step};
use crate::model::group::{self, Group, Wanted};
use crate::model::instance::{self, Instance};
use crate::model::overview::Sort;
use crate::model::queue::{Queue, STATES};
use crate::model::record::Record;
use crate::model::run_times::{self, RunTimes};
use crate::model::search::{self, Place};
use crate::model::series::Span;
use crate::model::step;
use crate::model::trouble::Trouble;
use crate::model::watch::Entry;
use crate::model::workers::Worker;
use crate::server::{verb, Server};
use crate::time_text::Millis;

/// The description of these addresses, as of OpenAPI 3.1.
const DESCRIPTION: &str = include_str!("assets/openapi.json");

/// Number of messages if the address has no `count`.
const COUNT: usize = 25;

/// Maximum number of groups and batches of a queue.
const LISTED: usize = 100;

/// Returns the answer to a request behind `api/`.
pub fn route(ask: &Ask, what: &str) -> Result<Answer, HttpError> {
    let value = match what {
        "do" | "stop" if !ask.posted => {
            return Err(HttpError::mistake("this changes something: use POST"))
        }
        "do" => act(ask)?,
        "stop" => {
            let job = ask.job("id")?;
            job.stop();
            progress(&job)
        }
        _ if ask.posted => return Err(HttpError::mistake("this only reads: use GET")),
        "job" => progress(ask.job("id")?.as_ref()),
        "openapi.json" => return Ok(Answer::Json(DESCRIPTION.to_owned())),
        "queues" => return queues(ask).map(Answer::Json),
        "queue" => one_queue(ask)?,
        "messages" => messages(ask)?,
        "message" => message(ask)?,
        "search" => search(ask)?,
        "errors" => dead_by_error(ask)?,
        "workers" => {
            let workers = ask.site.workers(&ask.visitor.rights.scope)?;
            workers.found.iter().map(Worker::json).collect()
        }
        "types" => run_times_by_type(ask)?,
        "history" => history(ask)?,
        "server" => server(ask),
        _ => return Err(HttpError::missing("There is no such page.")),
    };
    Ok(Answer::Json(value.to_string()))
}

/// Does what a form would do, with the same fields, and without a question. The answer has what came
/// of it, or how far a long action is.
fn act(ask: &Ask) -> Result<Json, HttpError> {
    let action = Action::parse(&ask.query.clone().and(&ask.form))?;
    Ok(progress(&action.begin(&ask.site, &ask.visitor)))
}

fn progress(job: &Job) -> Json {
    let outcome = job.outcome();
    json!({
        "id": job.id,
        "action": job.words,
        "user": job.user,
        "changed": job.changed(),
        "done": outcome.is_some(),
        "failed": matches!(outcome, Some(Err(_))),
        "outcome": job.progress(),
    })
}

fn figures(entry: &Entry) -> Json {
    let queue = &entry.queue;
    let mut fields = Map::new();
    fields.insert("queue".to_owned(), json::name(&queue.name));
    for state in STATES {
        fields.insert(state.to_owned(), queue.count(state).into());
    }
    let numbers = [
        ("groups", queue.groups),
        ("consumers", queue.consumers),
        ("blocked-clients", queue.blocked_clients),
        ("batches", queue.batches),
        ("breakers-open", queue.breakers_open),
        ("bytes", queue.bytes),
        ("sent", queue.totals.sent),
        ("delivered", queue.totals.delivered),
        ("acked", queue.totals.acked),
        ("nacked", queue.totals.nacked),
        ("timeouts", queue.totals.timeouts),
        ("deaths", queue.totals.deaths),
    ];
    for (name, value) in numbers {
        fields.insert(name.to_owned(), value.into());
    }
    fields.insert("paused".to_owned(), queue.paused.into());
    fields.insert("closed".to_owned(), queue.closed.into());
    let trouble = queue.trouble.iter().map(Trouble::json);
    fields.insert("trouble".to_owned(), trouble.collect());
    fields.insert("oldest-ready-age".to_owned(), queue.oldest_ready_age.into());
    fields.insert("oldest-due-age".to_owned(), queue.oldest_due_age.into());
    let rates = entry.rates().map(|rates| {
        json!({
            "sent": rates.sent,
            "delivered": rates.delivered,
            "acked": rates.acked,
            "nacked": rates.nacked,
            "timeouts": rates.timeouts,
            "deaths": rates.deaths,
        })
    });
    fields.insert("per-second".to_owned(), rates.unwrap_or(Json::Null));
    Json::Object(fields)
}

/// Returns the last figures of a page of queues. They become text one by one, because all of
/// them as values would take tens of megabytes.
fn queues(ask: &Ask) -> Result<String, HttpError> {
    let count = number(&ask.query, &bounds::PAGE_OF_QUEUES, 1000)?;
    let page = number(&ask.query, &bounds::PAGE, 1)?;
    let sort = Sort::of(ask.query.text("sort")).unwrap_or(Sort::Name);
    let live = ask.site.live();
    let mut entries: Vec<&Entry> = ask.entries(&live.board).collect();
    sort.sort(&mut entries, |entry| &entry.queue);
    let shown = entries.iter().skip((page - 1) * count).take(count);
    let texts: Vec<String> = shown.map(|entry| figures(entry).to_string()).collect();
    let more = entries.len() > page * count;
    let about = json!({
        "server": live.place,
        "lost": live.lost,
        "complete": live.board.complete,
        "warnings": instance::warnings(&live.instances),
        "count": entries.len(),
        "next-page": more.then_some(page + 1),
    });
    let about = about.to_string();
    let about = about.strip_suffix('}').unwrap_or_default();
    Ok(format!("{about},\"queues\":[{}]}}", texts.join(",")))
}

/// Returns all fields that the server has of a queue.
fn one_queue(ask: &Ask) -> Result<Json, HttpError> {
    let key = queue(&ask.query)?;
    Ok(ask.read(|server| {
        let info = server.call(&verb("DQ.INFO", &key))?;
        let figures = Queue::of(&key, info.clone())?;
        let list = |server: &mut Server, name: &str| {
            let reply = server.call(&verb(name, &key));
            allowed(reply.map(|reply| json::of(&reply)))
        };
        Ok(json!({
            "queue": json::name(&key),
            "info": json::of(&info),
            "overdue": figures.overdue(),
            "consumers-named": figures.consumers,
            "consumers": list(server, "DQ.CONSUMERS")?,
            "schedules": list(server, "DQ.SCHEDULES")?,
            "held-groups": allowed(held_groups(server, &key))?,
            "open-batches": allowed(open_batches(server, &key))?,
        }))
    })?)
}

/// Returns null for fields that the user may not see.
fn allowed(value: Result<Json, Failure>) -> Result<Json, Failure> {
    match value {
        Err(Failure::Refused(_)) => Ok(Json::Null),
        value => value,
    }
}

/// Returns the groups that have due messages and cannot give one, and why.
fn held_groups(server: &mut Server, key: &[u8]) -> Result<Json, Failure> {
    let groups = group::fetch(server, key, Wanted::Held, LISTED)?;
    let one = |group: &Group| {
        json!({
            "group": json::name(&group.name),
            "state": group.state,
            "waiting": group.waiting,
            "running": group.running,
            "head": group.head.as_deref().map(json::name),
            "breaker": group.breaker,
            "why": group.why.as_ref().map(|why| json!({
                "code": why.code, "why": why.why, "until": why.until, "by": why.by,
            })),
        })
    };
    Ok(groups.found.iter().map(one).collect())
}

fn open_batches(server: &mut Server, key: &[u8]) -> Result<Json, Failure> {
    let (batches, _) = batch::fetch(server, key, LISTED)?;
    let one = |batch: &Batch| {
        json!({
            "batch": json::name(&batch.name),
            "pending": batch.pending,
            "running": batch.running,
            "dead": batch.dead,
            "finished": batch.finished,
            "cancelled": batch.cancelled,
            "held": batch.held,
        })
    };
    Ok(batches.iter().map(one).collect())
}

/// Returns the queues that have a message of this id.
fn search(ask: &Ask) -> Result<Json, HttpError> {
    let id = ask.query.get("find");
    let id = id.ok_or_else(|| HttpError::mistake("the address names no id: find=..."))?;
    let names = ask.queue_names();
    let found = ask.read(|server| search::by_id(server, &names, id))?;
    let one = |(queue, message): &(Vec<u8>, Record)| json!({ "queue": json::name(queue), "message": json::map(message.fields()) });
    let messages: Vec<Json> = found.messages.iter().map(one).collect();
    Ok(json!({ "found": messages, "looked-at": found.asked, "queues": names.len() }))
}

/// Returns how long messages of each type have run, in ms.
fn run_times_by_type(ask: &Ask) -> Result<Json, HttpError> {
    let key = queue(&ask.query)?;
    let (types, since) = ask.read(|server| run_times::fetch(server, &key))?;
    let one = |one: &RunTimes| {
        json!({
            "type": json::name(&one.kind),
            "messages": one.count(),
            "median": one.percentile(50),
            "p95": one.percentile(95),
            "longest": one.percentile(100),
            "sum": one.sum(),
            "repeated": one.repeats,
        })
    };
    Ok(json!({ "since": since, "types": types.iter().map(one).collect::<Vec<_>>() }))
}

/// Returns the history of a queue, or of all.
fn history(ask: &Ask) -> Result<Json, HttpError> {
    let key = match ask.query.get("queue") {
        Some(_) => Some(queue(&ask.query)?),
        None => None,
    };
    if !key.as_ref().map_or(!ask.is_limited(), |key| ask.sees(key)) {
        return Err(HttpError::forbidden("name one of your queues: queue=..."));
    }
    let word = ask.query.text("span");
    let span = match (word, Span::of(word)) {
        ("", _) => Span::default(),
        (_, Some(span)) => span,
        _ => return Err(HttpError::mistake("span is 15m, 1h, 24h or 7d")),
    };
    let (view, source) = ask.site.history(key.as_deref(), span);
    let step = |(at, step): (Millis, &step::Step)| {
        json!({
            "at": at,
            "sent": step.sent,
            "acked": step.acked,
            "deaths": step.deaths,
            "waiting": step.waiting,
            "overdue": step.late,
        })
    };
    let steps: Vec<Json> = view.known().map(step).collect();
    Ok(json!({ "span": span.word(), "step": view.step, "source": source, "steps": steps }))
}

/// Returns a number of the address, or the usual one if it has none.
fn number(query: &Query, bound: &Bound, usual: usize) -> Result<usize, HttpError> {
    let Bound { name, least, most } = bound;
    match query.text(name) {
        "" => Ok(usual),
        text => bound.count(text).ok_or_else(|| {
            HttpError::mistake(&format!("{name} is a number from {least} to {most}"))
        }),
    }
}

/// Returns a page of messages, and the cursor of the next.
fn messages(ask: &Ask) -> Result<Json, HttpError> {
    let key = queue(&ask.query)?;
    let filter = filter(&ask.query)?;
    let place = Place::of(&key, &filter.state)?;
    let count = number(&ask.query, &bounds::PAGE_OF_MESSAGES, COUNT)?;
    let step = Step {
        cursor: ask.query.get("cursor").map(<[u8]>::to_vec),
        count,
        newest_first: !ask.query.text("newest").is_empty(),
    };
    let (next, found) = ask.read(|server| find::messages(server, &place, &filter, &step))?;
    let found: Vec<Json> = found.iter().map(|m| json::map(m.fields())).collect();
    Ok(json!({ "messages": found, "next": next.as_deref().map(json::name) }))
}

/// Returns a message.
fn message(ask: &Ask) -> Result<Json, HttpError> {
    let key = queue(&ask.query)?;
    let id = ask.query.get("id");
    let id = id.ok_or_else(|| HttpError::mistake("the address names no message"))?;
    let message = ask.read(|server| {
        let mut cmd = verb("DQ.GET", &key);
        cmd.arg(id);
        Record::maybe(server.call(&cmd)?)
    })?;
    let message = message.ok_or_else(|| HttpError::missing("There is no such message."))?;
    Ok(json::map(message.fields()))
}

/// Returns the dead messages of a queue or a family, grouped by their errors.
fn dead_by_error(ask: &Ask) -> Result<Json, HttpError> {
    let target = target(&ask.query)?;
    let found = ask.read(|server| {
        let queues = target.queues(server)?;
        errors::collect(server, &queues, errors::PATIENCE)
    })?;
    let groups: Vec<Json> = found
        .groups
        .iter()
        .map(|group| {
            json!({
                "error": json::name(&group.words),
                "pattern": json::name(&group.pattern),
                "reason": group.reason,
                "count": group.count,
                "first": group.first,
                "last": group.last,
            })
        })
        .collect();
    Ok(json!({ "errors": groups, "looked-at": found.looked, "more": found.more }))
}

/// Returns the figures that the servers report about themselves.
fn server(ask: &Ask) -> Json {
    let live = ask.site.live();
    let one = |instance: &Instance| {
        json!({
            "place": if instance.place.is_empty() { &live.place } else { &instance.place },
            "engine": instance.engine(),
            "module": instance.text("dq_version"),
            "module-loaded": instance.module,
            "role": instance.text("role"),
            "used-memory": instance.number("used_memory"),
            "maxmemory": instance.number("maxmemory"),
            "maxmemory-policy": instance.text("maxmemory_policy"),
            "appendonly": instance.text("aof_enabled").map(|enabled| enabled == "1"),
            "replicas": instance.number("connected_slaves"),
            "warnings": instance.warnings(),
        })
    };
    json!({ "servers": live.instances.iter().map(one).collect::<Vec<_>>() })
}
