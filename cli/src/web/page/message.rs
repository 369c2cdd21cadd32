//! One message: its payload, its story with times, and why it is where it is.

use maud::{html, Markup};
use redis::Value;

use super::children;
use super::layout::{layout, trail};
use super::parts::{action, badge, bar, capital, direct, name, time, to_form};
use super::payload::{lines, payload_of};
use super::story::{failed, story};
use crate::failure::Failure;
use crate::model::change::Target;
use crate::model::coded;
use crate::model::group::Why;
use crate::model::record::{shown, Record};
use crate::server::{verb, Server};
use crate::text::printable;
use crate::web::action::chosen::OneAct;
use crate::web::address::{of_target, queue};
use crate::web::answer::{Answer, Ask, HttpError};
use crate::web::query::Query;

/// Maximum size of a payload that a form shows to be changed.
pub const EDITED: usize = 64 << 10;

/// Fields that have a place of their own on the page.
const ELSEWHERE: [&str; 12] = [
    "id", "status", "state", "payload", "headers", "error", "errors", "result", "note", "signal",
    "reason", "parent",
];

/// Fetches a message.
pub fn get(server: &mut Server, queue: &[u8], id: &[u8]) -> Result<Option<Record>, Failure> {
    let mut cmd = verb("DQ.GET", queue);
    cmd.arg(id);
    Record::maybe(server.call(&cmd)?)
}

/// Reads queue and id of an address.
pub fn named(query: &Query) -> Result<(Vec<u8>, Vec<u8>), HttpError> {
    let id = query.get("id").map(<[u8]>::to_vec);
    let id = id.ok_or_else(|| HttpError::mistake("the address names no message"))?;
    Ok((queue(query)?, id))
}

/// Returns the answer for a message that is gone.
pub fn gone() -> HttpError {
    HttpError::missing(
        "There is no such message: it was purged, or it ended and its record is not kept (RETAIN).",
    )
}

/// Gives the payload as a file.
pub fn payload(ask: &Ask) -> Result<Answer, HttpError> {
    let (queue, id) = named(&ask.query)?;
    let message = ask.read(|server| get(server, &queue, &id))?;
    let message = message.ok_or_else(gone)?;
    Ok(Answer::Bytes(
        message.bytes("payload").unwrap_or_default().to_vec(),
    ))
}

/// Shows a message.
pub fn show(ask: &Ask) -> Result<Answer, HttpError> {
    let (queue, id) = named(&ask.query)?;
    let (message, why, now, kept, of_it) = ask.read(|server| {
        let message = get(server, &queue, &id)?;
        let of_it = children::fetch(
            server,
            (&queue, &id),
            ask.query.get("children"),
            message.as_ref(),
        )?;
        let mut cmd = verb("DQ.EXPLAIN", &queue);
        cmd.arg(&id);
        // A user who may not ask this sees all other parts.
        let why = match server.call(&cmd) {
            Err(Failure::Refused(_)) => None,
            reply => Why::of(reply?)?,
        };
        let info = Record::of(server.call(&verb("DQ.INFO", &queue))?)?;
        let (now, kept) = (info.count("now"), info.number("errors"));
        Ok((message, why, now, kept, of_it))
    })?;
    let message = message.ok_or_else(gone)?;
    let clear = coded::texts(&queue, &message);
    let state = message.text("state");
    let target = of_target(&Target::Queue(queue.clone()));
    let here = target.clone().with("id", &id);
    let mut steps = trail(&queue);
    steps.push((
        state.clone(),
        target
            .clone()
            .with("state", state.as_bytes())
            .link("messages"),
    ));
    steps.push((printable(&id), here.link("message")));
    let text = |field: &str| message.text(field);
    let content = html! {
        h1 { (name(&id)) }
        section #message data-live {
            p {
                (badge(&state, if state == "dead" { "bad" } else { "" }))
                @if !text("reason").is_empty() { " " (badge(&text("reason"), "bad")) }
            }
            @if let Some(why) = &why {
                p.why {
                    @if why.code != state { (badge(&why.code, "")) " " }
                    (why.why)
                    @if let Some(until) = why.until { " Until " (time(Some(until), now)) "." }
                    @if !why.by.is_empty() && !is_hidden(ask, why) { " By " (by(why, &target)) "." }
                }
            }
            @for (field, kind) in [("error", "bad"), ("note", ""), ("signal", ""), ("result", "")] {
                @if !text(field).is_empty() {
                    h2 { (field) @if field == "note" { " " (bar(&message)) } }
                    pre class={ "text " (kind) } { (lines(clear.bytes(field).unwrap_or_default())) }
                }
            }
            (children::parent(&message, &queue))
            h2 { "Story" }
            (story(&message, now))
        }
        (children::children(ask, &(queue.clone(), id.clone()), &of_it, now))
        (failed(ask, &message, kept, &target))
        (acts(ask, &message, &here, &state, why.as_ref().is_some_and(|why| why.code == "parked")))
        (payload_of(&message, &queue, &here, ask.query.text("as")))
        (headers(&queue, &message))
        h2 { "Fields" }
        dl #fields data-live {
            @for (key, value) in message.fields() {
                @let key = shown(key);
                @if !ELSEWHERE.contains(&key.as_str()) && !shown(value).is_empty() {
                    dt { (key) }
                    dd {
                        @match value {
                            Value::Int(at) if is_time(&key) => (time(u64::try_from(*at).ok(), now)),
                            value => (shown(value)),
                        }
                    }
                }
            }
        }
    };
    let title = format!("{} of {}", printable(&id), printable(&queue));
    Ok(layout(ask, &title, &steps, content))
}

/// Returns whether the cause may be a child in a queue that the visitor may not see.
fn is_hidden(ask: &Ask, why: &Why) -> bool {
    why.code == "children-open" && ask.is_limited()
}

/// Returns the cause that holds a message back: a link, if the cause is another message.
pub fn by(why: &Why, queue: &Query) -> Markup {
    html! {
        // The name is shown as it can be printed, so only a plain one leads to the message.
        @if why.code == "behind-head" && !why.by.contains('\\') {
            a href=(queue.clone().with("id", why.by.as_bytes()).link("message")) { (why.by) }
        } @else { b { (why.by) } }
    }
}

/// Returns the actions on a message.
fn acts(ask: &Ask, message: &Record, here: &Query, state: &str, is_parked: bool) -> Markup {
    let button = |act: OneAct, key: &str| {
        let query = here.clone().with("act", act.name().as_bytes());
        action(ask, &capital(act.word()), key, &query)
    };
    let waits = matches!(state, "delayed" | "ready" | "blocked" | "retry" | "held");
    // A form cannot hold other bytes, and changes the line breaks of some systems.
    let payload = message.bytes("payload").unwrap_or_default();
    let is_text = !coded::is_coded(message)
        && payload.len() <= EDITED
        && !payload.contains(&b'\r')
        && !payload.contains(&0)
        && std::str::from_utf8(payload).is_ok();
    html! {
        p.actions {
            @if state == "dead" {
                (direct(ask, "Redrive", "r", &here.clone().with("act", b"redrive-one")))
            }
            @if OneAct::Now.fits(state) {
                (direct(ask, "Run now", "", &here.clone().with("act", b"now-one")))
            }
            @if is_parked { (to_form(ask, "Send signal", "", "signal", here)) }
            @if waits {
                (to_form(ask, "Reschedule", "", "reschedule", here))
                @if is_text { (to_form(ask, "Edit payload", "", "edit", here)) }
            }
            @if state == "running" { (button(OneAct::EndLease, "")) }
            @if is_text { (to_form(ask, "Duplicate", "", "send", here)) }
            // A copy has another id.
            @else if !coded::is_bound(message) { (button(OneAct::Duplicate, "")) }
            @if OneAct::Cancel.fits(state) { (button(OneAct::Cancel, "")) }
            (button(OneAct::Purge, ""))
        }
    }
}

fn is_time(field: &str) -> bool {
    field.ends_with("-at") || field == "lease-until"
}

fn headers(queue: &[u8], message: &Record) -> Markup {
    let pairs = coded::headers(queue, message);
    if pairs.is_empty() {
        return html! {};
    }
    html! {
        h2 { "Headers" }
        dl {
            @for (field, value) in pairs {
                dt { (field) }
                dd { (value) }
            }
        }
    }
}
