//! The messages of a state, with conditions, a page at a time.

use std::time::{Duration, Instant};

use maud::{html, Markup};

use super::layout::{layout, trail};
use super::parts::{action, badge, name, time};
use crate::failure::Failure;
use crate::model::change::Target;
use crate::model::find::{self, Act, Filter, Step};
use crate::model::queue::{Queue, STATES};
use crate::model::record::Record;
use crate::server::{verb, Server};
use crate::text::{cut, printable};
use crate::web::address::{filter, of_target, target};
use crate::web::answer::{Answer, Ask, HttpError};
use crate::web::query::Query;

/// Number of messages on a page.
const PAGE: usize = 25;

/// Number of messages that one step looks at if there are conditions.
const STEP: usize = 200;

/// Maximum time for which one page is looked for.
const PATIENCE: Duration = Duration::from_millis(1000);

/// The conditions, with what their fields are for.
const CONDITIONS: [(&str, &str, &str); 10] = [
    ("id", "id", "order-7-*"),
    ("type", "type", ""),
    ("group", "group", ""),
    ("batch", "batch", ""),
    ("error", "error", "HTTP 5*"),
    ("payload", "payload", "*\"user\":7*"),
    ("header", "header", ""),
    ("value", "its value", ""),
    ("since", "since", "2026-11-20T12:00 or 2h"),
    ("until", "until", ""),
];

/// A page of messages.
struct Found {
    messages: Vec<(Vec<u8>, Record)>,
    /// The queue and the cursor at which the next page begins.
    next: Option<(usize, Option<Vec<u8>>)>,
    now: u64,
}

/// Shows the messages.
pub fn show(ask: &Ask) -> Result<Answer, HttpError> {
    let query = &ask.query;
    let (target, filter) = (target(query)?, filter(query)?);
    let newest = !query.text("newest").is_empty();
    let start = start(query);
    let found = ask.site.read(|server| {
        let queues = target.queues(server)?;
        look(server, &queues, &filter, newest, start.clone())
    })?;
    let here = query.without(&["at", "cursor"]);
    let shown = target.shown();
    let mut steps = match &target {
        Target::Queue(name) => trail(name),
        Target::Family(_) => vec![(shown.clone(), of_target(&target).link("family"))],
    };
    steps.push((filter.state.clone(), here.link("messages")));
    let next = found.next.as_ref().map(|(at, cursor)| {
        let at = at.to_string();
        let cursor = cursor.as_deref().unwrap_or_default();
        let query = here
            .clone()
            .with("at", at.as_bytes())
            .with("cursor", cursor);
        query.link("messages")
    });
    let acts = [Act::Redrive, Act::Cancel, Act::Purge];
    let content = html! {
        h1 { (filter.state) " messages of " (shown) }
        p.choices {
            @for state in STATES {
                @let address = of_target(&target).with("state", state.as_bytes()).link("messages");
                @if state == filter.state { b { (state) } } @else { a href=(address) { (state) } }
            }
        }
        (form(&target, &filter, query, newest))
        p.actions {
            @for act in acts {
                @if act.fits(&filter.state) {
                    @let words = match filter.is_whole_state() {
                        true => format!("{} all", word(act)),
                        false => format!("{} all that match", word(act)),
                    };
                    @let key = if act == Act::Redrive { "r" } else { "" };
                    (action(ask, &words, key, &here.clone().with("act", act.word().as_bytes())))
                }
            }
        }
        (table(&found, &filter, matches!(target, Target::Family(_))))
        nav.pages {
            @if start.is_some() { a href=(here.link("messages")) data-key="[" { "‹ first page" } }
            @if let Some(next) = &next { a href=(next) data-key="]" { "next page ›" } }
        }
    };
    Ok(layout(
        ask,
        &format!("{} of {shown}", filter.state),
        &steps,
        content,
    ))
}

/// Returns the word of a button.
fn word(act: Act) -> &'static str {
    match act {
        Act::Redrive => "Redrive",
        Act::Cancel => "Cancel",
        Act::Purge => "Remove",
    }
}

/// Reads where a page begins. `None` is the beginning.
fn start(query: &Query) -> Option<(usize, Option<Vec<u8>>)> {
    let at = query.text("at").parse().ok()?;
    Some((at, query.get("cursor").map(<[u8]>::to_vec)))
}

/// Looks for the messages of one page. It ends early, with what there is, if that takes
/// long: with conditions that hardly any message meets.
fn look(
    server: &mut Server,
    queues: &[Vec<u8>],
    filter: &Filter,
    newest_first: bool,
    start: Option<(usize, Option<Vec<u8>>)>,
) -> Result<Found, Failure> {
    let begun = Instant::now();
    let (mut at, cursor) = start.unwrap_or_default();
    let mut step = Step {
        cursor,
        count: if filter.is_whole_state() { PAGE } else { STEP },
        newest_first,
    };
    let mut found = Found {
        messages: Vec::new(),
        next: None,
        now: 0,
    };
    while let Some(queue) = queues.get(at) {
        if found.now == 0 {
            let info = Queue::of(queue, server.call(&verb("DQ.INFO", queue))?)?;
            found.now = info.now;
        }
        let (next, messages) = find::messages(server, queue, filter, &step)?;
        let messages = messages.into_iter().map(|message| (queue.clone(), message));
        found.messages.extend(messages);
        if next.is_none() {
            at += 1;
        }
        step.cursor = next;
        if found.messages.len() >= PAGE || begun.elapsed() > PATIENCE {
            break;
        }
    }
    if at < queues.len() {
        found.next = Some((at, step.cursor));
    }
    Ok(found)
}

fn form(target: &Target, filter: &Filter, query: &Query, newest: bool) -> Markup {
    let (field, name) = match target {
        Target::Queue(name) => ("queue", name),
        Target::Family(name) => ("family", name),
    };
    // A form sends text. For a name that is none, addresses with conditions must be
    // written by hand.
    let Ok(name) = std::str::from_utf8(name) else {
        return html! {};
    };
    let open = !filter.is_whole_state();
    html! {
        details.filter open[open] {
            summary data-key="/" { "Conditions" }
            form.bar method="get" action="messages" {
                input type="hidden" name=(field) value=(name);
                input type="hidden" name="state" value=(filter.state);
                @for (field, words, example) in CONDITIONS {
                    label { (words)
                        input name=(field) value=(query.text(field)) placeholder=(example);
                    }
                }
                label.check { input type="checkbox" name="newest" value="1" checked[newest]; "newest first" }
                button { "Find" }
                p.note { "id, error and payload are patterns as of KEYS. Times are those that order the state, in UTC." }
            }
        }
    }
}

fn table(found: &Found, filter: &Filter, family: bool) -> Markup {
    let address = |queue: &[u8], id: &[u8]| {
        Query::default()
            .with("queue", queue)
            .with("id", id)
            .link("message")
    };
    html! {
        @if found.messages.is_empty() {
            p.none {
                @if found.next.is_some() { "None among those looked at so far: see the next page." }
                @else { "There are no such messages." }
            }
        } @else {
            table {
                thead { tr {
                    th { "id" } @if family { th { "queue" } } th { "type" } th { "group" }
                    th.n { "attempt" } th { (when(&filter.state).0) } th { "error or note" } th { "payload" }
                } }
                tbody {
                    @for (queue, message) in &found.messages {
                        @let id = message.bytes("id").unwrap_or_default();
                        @let payload = message.bytes("payload").unwrap_or_default();
                        tr data-row {
                            td.first { a href=(address(queue, id)) { (name(id)) } }
                            @if family { td data-label="queue" { (name(queue)) } }
                            td data-label="type" { (message.text("type")) }
                            td data-label="group" { (cut(&message.text("group"), 40)) }
                            td.n data-label="attempt" { (message.count("attempt")) }
                            td data-label=(when(&filter.state).0) {
                                (time(message.number(when(&filter.state).1), found.now))
                            }
                            td data-label="error or note" {
                                @let reason = message.text("reason");
                                @if !reason.is_empty() { (badge(&reason, "")) " " }
                                (cut(&message.text(if message.text("error").is_empty() { "note" } else { "error" }), 60))
                            }
                            td data-label="payload" { code { (cut(&printable(head(payload)), 60)) } }
                        }
                    }
                }
            }
        }
    }
}

/// Returns the beginning of a payload, which may be very large.
fn head(payload: &[u8]) -> &[u8] {
    payload.get(..400).unwrap_or(payload)
}

/// Returns the word for the time that orders a state, and its field in DQ.GET.
fn when(state: &str) -> (&'static str, &'static str) {
    match state {
        "running" => ("lease ends", "lease-until"),
        "finished" | "cancelled" => ("ended", "finished-at"),
        "dead" => ("died", "finished-at"),
        "held" => ("sent", "sent-at"),
        _ => ("due", "due-at"),
    }
}
