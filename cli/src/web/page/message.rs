//! One message: its payload, its story with times, and why it is where it is.

use maud::{html, Markup};
use redis::Value;

use super::layout::{layout, trail};
use super::parts::{action, badge, name, time};
use crate::failure::Failure;
use crate::model::change::Target;
use crate::model::find::Act;
use crate::model::group::Why;
use crate::model::queue::Queue;
use crate::model::record::{bytes, shown, Record};
use crate::server::{verb, Server};
use crate::text::printable;
use crate::time_text::{stamp, Millis};
use crate::web::address::{of_target, queue};
use crate::web::answer::{Answer, Ask, HttpError};
use crate::web::query::Query;

/// Maximum number of bytes of a payload that a page shows.
const SHOWN: usize = 64 << 10;

/// Bytes in a line of a hex dump.
const LINE: usize = 16;

/// Fields that have a place of their own on the page.
const ELSEWHERE: [&str; 9] = [
    "id", "status", "state", "payload", "headers", "error", "result", "note", "reason",
];

fn get(server: &mut Server, queue: &[u8], id: &[u8]) -> Result<Option<Record>, Failure> {
    let mut cmd = verb("DQ.GET", queue);
    cmd.arg(id);
    Record::maybe(server.call(&cmd)?)
}

fn named(query: &Query) -> Result<(Vec<u8>, Vec<u8>), HttpError> {
    let id = query.get("id").map(<[u8]>::to_vec);
    let id = id.ok_or_else(|| HttpError::mistake("the address names no message"))?;
    Ok((queue(query)?, id))
}

fn gone() -> HttpError {
    HttpError::missing(
        "There is no such message: it was purged, or it ended and its record is not kept (RETAIN).",
    )
}

/// Gives the payload as a file.
pub fn payload(ask: &Ask) -> Result<Answer, HttpError> {
    let (queue, id) = named(&ask.query)?;
    let message = ask.site.read(|server| get(server, &queue, &id))?;
    let message = message.ok_or_else(gone)?;
    Ok(Answer::Bytes(
        message.bytes("payload").unwrap_or_default().to_vec(),
    ))
}

/// Shows a message.
pub fn show(ask: &Ask) -> Result<Answer, HttpError> {
    let (queue, id) = named(&ask.query)?;
    let (message, why, now) = ask.site.read(|server| {
        let message = get(server, &queue, &id)?;
        let mut cmd = verb("DQ.EXPLAIN", &queue);
        cmd.arg(&id);
        // A user who may not ask this sees everything else.
        let why = match server.call(&cmd) {
            Err(Failure::Refused(_)) => None,
            reply => Why::of(reply?)?,
        };
        let info = Queue::of(&queue, server.call(&verb("DQ.INFO", &queue))?)?;
        Ok((message, why, info.now))
    })?;
    let message = message.ok_or_else(gone)?;
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
    let act = |word: &str| here.clone().with("act", word.as_bytes());
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
                    @if !why.by.is_empty() { " By " b { (why.by) } "." }
                }
            }
            @for (field, kind) in [("error", "bad"), ("note", ""), ("result", "")] {
                @if !text(field).is_empty() {
                    h2 { (field) }
                    pre class={ "text " (kind) } { (text(field)) }
                }
            }
            h2 { "Story" }
            (story(&message, now))
        }
        p.actions {
            @if state == "dead" { (action(ask, "Redrive", "r", &act("redrive-one"))) }
            @if Act::Cancel.fits(&state) { (action(ask, "Cancel", "", &act("cancel-one"))) }
        }
        (payload_of(&message, &here, ask.query.text("as")))
        (headers(&message))
        h2 { "Fields" }
        dl #fields data-live {
            @for (key, value) in message.fields() {
                @let key = shown(key);
                @if !ELSEWHERE.contains(&key.as_str()) && *value != Value::Nil {
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

fn is_time(field: &str) -> bool {
    field.ends_with("-at") || field == "lease-until"
}

/// Returns what has happened to a message, and what will, in the order of time.
fn events(message: &Record, now: Millis) -> Vec<(Millis, String)> {
    let at = |field: &str| message.number(field);
    let state = message.text("state");
    let attempt = message.count("attempt");
    let consumer = match message.text("consumer") {
        name if name.is_empty() => String::new(),
        name => format!(" to {name}"),
    };
    let mut events = Vec::new();
    let mut add = |at: Option<Millis>, words: String| events.extend(at.map(|at| (at, words)));
    if at("first-sent-at") != at("sent-at") {
        add(
            at("first-sent-at"),
            "the first of the messages that it replaced was sent".to_owned(),
        );
    }
    add(at("sent-at"), "sent".to_owned());
    if at("due-at") != at("sent-at") {
        let due = at("due-at").is_some_and(|due| due > now);
        add(
            at("due-at"),
            (if due { "will be due" } else { "was due" }).to_owned(),
        );
    }
    if at("first-started-at") != at("started-at") {
        add(at("first-started-at"), "first delivered".to_owned());
    }
    add(
        at("started-at"),
        format!("delivered{consumer}, attempt {attempt}"),
    );
    add(
        at("lease-until"),
        "its lease ends, unless it is renewed".to_owned(),
    );
    add(
        at("finished-at"),
        match state.as_str() {
            "dead" => format!("died: {}", message.text("reason")),
            state => state.to_owned(),
        },
    );
    // The sort is stable: what happened in one millisecond stays in this order.
    events.sort_by_key(|(at, _)| *at);
    events
}

fn story(message: &Record, now: Millis) -> Markup {
    let failures = message.count("failures");
    let timeouts = message.count("timeouts");
    html! {
        ol.story {
            @for (at, words) in events(message, now) {
                li class=[(at > now).then_some("later")] {
                    time { (stamp(at)) } " " span { (words) } " " span.note { "(" (time(Some(at), now)) ")" }
                }
            }
        }
        @if failures > 0 {
            p.note {
                (crate::text::plural(failures, "failure")) ", of which " (timeouts) " by the end of a lease; "
                @match message.get("retries-left") {
                    Value::Int(-1) => "it is retried without end",
                    _ => { (message.count("retries-left")) " more are forgiven" },
                }
            }
        }
    }
}

fn payload_of(message: &Record, here: &Query, wanted: &str) -> Markup {
    let bytes = message.bytes("payload").unwrap_or_default();
    let (kind, text) = view(bytes, wanted);
    html! {
        h2 { "Payload " span.note { (crate::text::plural(bytes.len() as u64, "byte")) } }
        p.choices {
            @for choice in ["json", "text", "hex"] {
                @let address = here.clone().with("as", choice.as_bytes()).link("message");
                @if choice == kind { b { (choice) } } @else { a href=(address) { (choice) } }
            }
            a href=(here.link("payload")) { "save" }
        }
        pre.payload #payload { (text) }
        @if bytes.len() > SHOWN { p.note { "This is the beginning of it. Save it to see all." } }
    }
}

/// Returns a payload for people: as it was wanted, or as JSON or text if it is that.
fn view(payload: &[u8], wanted: &str) -> (&'static str, String) {
    let head = payload.get(..SHOWN).unwrap_or(payload);
    let json = || {
        let whole = Some(payload).filter(|payload| payload.len() <= SHOWN)?;
        let json: serde_json::Value = serde_json::from_slice(whole).ok()?;
        let text = serde_json::to_string_pretty(&json).ok()?;
        // The line breaks are ours; everything else is escaped as in other text.
        Some(lines(text.as_bytes()))
    };
    match wanted {
        "hex" => return ("hex", hex(head)),
        "text" => return ("text", lines(head)),
        _ => {}
    }
    match json() {
        Some(text) => ("json", text),
        None if std::str::from_utf8(payload).is_ok() => ("text", lines(head)),
        None => ("hex", hex(head)),
    }
}

/// Escapes what could mislead, line by line.
fn lines(text: &[u8]) -> String {
    let lines = text.split(|byte| *byte == b'\n').map(printable);
    lines.collect::<Vec<_>>().join("\n")
}

fn hex(payload: &[u8]) -> String {
    let mut text = String::new();
    for (i, line) in payload.chunks(LINE).enumerate() {
        let digits: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        let shown: String = line
            .iter()
            .map(|byte| match byte {
                b' '..=b'~' => char::from(*byte),
                _ => '.',
            })
            .collect();
        text.push_str(&format!(
            "{:08x}  {:<47}  {shown}\n",
            i * LINE,
            digits.join(" ")
        ));
    }
    text
}

fn headers(message: &Record) -> Markup {
    let Value::Map(pairs) = message.get("headers") else {
        return html! {};
    };
    html! {
        h2 { "Headers" }
        dl {
            @for (field, value) in pairs {
                dt { (name(bytes(field).unwrap_or_default())) }
                dd { (printable(bytes(value).unwrap_or_default())) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::record::record;

    #[test]
    fn a_payload_is_shown_as_what_it_is() {
        let json = view(
            b"{\"n\": 1.10, \"big\": 123456789012345678901234567890}",
            "",
        );
        assert_eq!(json.0, "json");
        assert!(
            json.1.contains("\"n\": 1.10,\n") && json.1.contains("123456789012345678901234567890")
        );
        assert_eq!(
            view(b"line 1\nline\x1b 2", ""),
            ("text", "line 1\nline\\x1b 2".to_owned())
        );
        assert_eq!(view(b"{}", "text"), ("text", "{}".to_owned()));
        let (kind, text) = view(b"\xff\x00abc", "");
        assert_eq!(
            (kind, text.trim_end()),
            (
                "hex",
                "00000000  ff 00 61 62 63                                   ..abc"
            )
        );
        assert_eq!(
            view("{\"a\":\"\u{202e}\"}".as_bytes(), "").1,
            "{\n  \"a\": \"\\u{202e}\"\n}"
        );
    }

    #[test]
    fn the_story_is_in_the_order_of_time() {
        let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let message = record(&[
            ("state", text("dead")),
            ("reason", text("retries")),
            ("attempt", Value::Int(2)),
            ("consumer", text("w1")),
            ("sent-at", Value::Int(10)),
            ("due-at", Value::Int(30)),
            ("first-started-at", Value::Int(20)),
            ("started-at", Value::Int(31)),
            ("finished-at", Value::Int(40)),
        ]);
        let words: Vec<_> = events(&message, 50)
            .into_iter()
            .map(|(_, words)| words)
            .collect();
        assert_eq!(
            words,
            [
                "sent",
                "first delivered",
                "was due",
                "delivered to w1, attempt 2",
                "died: retries"
            ]
        );
    }
}
