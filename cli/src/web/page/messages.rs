//! The messages of a state, with conditions, a page at a time.

use std::time::{Duration, Instant};

use maud::{html, Markup};

use super::layout::{layout, token, trail};
use super::parts::{action, badge, bar, capital, name, time};
use crate::failure::Failure;
use crate::model::change::Target;
use crate::model::error_text::summary;
use crate::model::find::{self, Act, Filter, Step};
use crate::model::queue::{Queue, STATES};
use crate::model::record::Record;
use crate::server::{verb, Server};
use crate::text::{cut, printable};
use crate::web::action::chosen::{Chosen, OneAct};
use crate::web::action::verb_of;
use crate::web::address::{filter, of_target, target};
use crate::web::answer::{Answer, Ask, HttpError};
use crate::web::query::Query;

/// Number of messages on a page.
const PAGE: usize = 25;

/// Number of messages that one step looks at if there are conditions.
const STEP: usize = 200;

/// Maximum time for which one page is looked for.
const PATIENCE: Duration = Duration::from_millis(1000);

/// The conditions, with the meaning of their fields.
const CONDITIONS: [(&str, &str, &str); 12] = [
    ("id", "id", "order-7-*"),
    ("type", "type", ""),
    ("group", "group", ""),
    ("batch", "batch", ""),
    ("parent", "parent's id", ""),
    ("parent-queue", "its queue", "this one"),
    ("error", "error", "HTTP 5*"),
    ("payload", "payload", "*\"user\":7*"),
    ("header", "header", ""),
    ("value", "its value", ""),
    ("since", "since", "2026-11-20T12:00 or 2h"),
    ("until", "until", ""),
];

/// The position at which a page begins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Begin {
    /// The place of its first queue among those of the target.
    at: usize,
    /// The name of its first queue.
    from: Vec<u8>,
    /// The cursor in that queue. Empty at its beginning.
    cursor: Vec<u8>,
}

impl Begin {
    fn of(query: &Query) -> Begin {
        let bytes = |name: &str| query.get(name).unwrap_or_default().to_vec();
        Begin {
            at: query.text("at").parse().unwrap_or(0),
            from: bytes("from"),
            cursor: bytes("cursor"),
        }
    }

    fn is_first(&self) -> bool {
        *self == Begin::default()
    }
}

/// A page of messages.
struct Found {
    messages: Vec<(Vec<u8>, Record)>,
    /// The position at which the next page begins.
    next: Option<Begin>,
    now: u64,
}

/// Shows the messages of a queue or a family, or of all queues if the address names none.
pub fn show(ask: &Ask) -> Result<Answer, HttpError> {
    let query = &ask.query;
    let everywhere = !query.has("queue") && !query.has("family");
    let target = match everywhere {
        true => None,
        false => Some(target(query)?),
    };
    let filter = filter(query)?;
    let newest = !query.text("newest").is_empty();
    let many = !matches!(target, Some(Target::Queue(_)));
    let begin = Begin::of(query);
    let found = ask.site.read(|server| {
        let queues = match &target {
            Some(target) => target.queues(server)?,
            None => ask.site.queues_with(&filter.state, &begin.from),
        };
        look(server, &queues, many, &filter, newest, &begin)
    })?;
    let here = query.without(&["at", "from", "cursor", "done"]);
    let shown = target
        .as_ref()
        .map_or("all queues".to_owned(), Target::shown);
    let base = target.as_ref().map(of_target).unwrap_or_default();
    let mut steps = match &target {
        Some(Target::Queue(name)) => trail(name),
        Some(Target::Family(_)) => vec![(shown.clone(), base.link("family"))],
        Some(Target::Several(_)) | None => Vec::new(),
    };
    steps.push((filter.state.clone(), here.link("messages")));
    let next = found.next.as_ref().map(|next| {
        let at = next.at.to_string();
        // All queues are found by name, because further ones may get such messages.
        let query = match everywhere {
            true => here.clone().with("from", &next.from),
            false => here.clone().with("at", at.as_bytes()),
        };
        query.with("cursor", &next.cursor).link("messages")
    });
    let acts = [Act::Redrive, Act::Cancel, Act::Purge];
    let content = html! {
        h1 { (filter.state) " messages of " (shown) }
        p.choices {
            @for state in STATES {
                @let address = base.clone().with("state", state.as_bytes()).link("messages");
                @if state == filter.state && filter.is_whole_state() { b { (state) } } @else { a href=(address) { (state) } }
            }
        }
        @if let Some(target) = &target { (form(target, &filter, query, newest)) }
        p.actions {
            @if filter.state == "dead" { a.button href=(base.link("errors")) { "By error" } }
            @for act in acts {
                @if !everywhere && act.fits(&filter.state) && !found.messages.is_empty() {
                    @let words = match filter.is_whole_state() {
                        true => format!("{} all", capital(verb_of(act))),
                        false => format!("{} all that match", capital(verb_of(act))),
                    };
                    @let key = if act == Act::Redrive { "r" } else { "" };
                    (action(ask, &words, key, &here.clone().with("act", act.word().as_bytes())))
                }
            }
        }
        (marked(ask, &found, &filter.state, table(ask, &found, &filter, many)))
        nav.pages {
            @if !begin.is_first() { a href=(here.link("messages")) data-key="[" { "‹ first page" } }
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

/// Puts a list into a form, with buttons for the messages that are marked in it.
fn marked(ask: &Ask, found: &Found, state: &str, list: Markup) -> Markup {
    let acts = [
        OneAct::Redrive,
        OneAct::Now,
        OneAct::EndLease,
        OneAct::Cancel,
        OneAct::Purge,
    ];
    let address = |act: OneAct| {
        let query = Query::default().with("act", act.name().as_bytes());
        query.with("back", ask.here().as_bytes()).link("confirm")
    };
    html! {
        @if ask.site.read_only || found.messages.is_empty() { (list) }
        @else {
            form method="post" action="confirm" {
                (token(ask))
                (list)
                p.actions.marked {
                    span.note { "with those that are marked:" }
                    @for act in acts {
                        @if act.fits(state) { button formaction=(address(act)) { (capital(act.word())) } }
                    }
                }
            }
        }
    }
}

/// Looks for the messages of one page. It ends early, with what there is, if that takes
/// long: with conditions that hardly any message meets.
fn look(
    server: &mut Server,
    queues: &[Vec<u8>],
    many: bool,
    filter: &Filter,
    newest_first: bool,
    begin: &Begin,
) -> Result<Found, Failure> {
    let begun = Instant::now();
    let mut at = begin.at;
    let mut step = Step {
        cursor: Some(begin.cursor.clone()).filter(|cursor| !cursor.is_empty()),
        count: if filter.is_whole_state() { PAGE } else { STEP },
        newest_first,
    };
    let mut found = Found {
        messages: Vec::new(),
        next: None,
        now: 0,
    };
    while let Some(queue) = queues.get(at) {
        let asked = page_of(server, queue, filter, &step, &mut found.now);
        let (next, messages) = match asked {
            // One of several queues is gone by now, or the user may not read it.
            Err(Failure::Refused(_)) if many => (None, Vec::new()),
            asked => asked?,
        };
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
        found.next = Some(Begin {
            at,
            from: queues.get(at).cloned().unwrap_or_default(),
            cursor: step.cursor.unwrap_or_default(),
        });
    }
    Ok(found)
}

/// Asks a queue for messages, and for the time of its clock, if that is not known yet.
fn page_of(
    server: &mut Server,
    queue: &[u8],
    filter: &Filter,
    step: &Step,
    now: &mut u64,
) -> Result<(Option<Vec<u8>>, Vec<Record>), Failure> {
    if *now == 0 {
        *now = Queue::of(queue, server.call(&verb("DQ.INFO", queue))?)?.now;
    }
    find::messages(server, queue, filter, step)
}

fn form(target: &Target, filter: &Filter, query: &Query, newest: bool) -> Markup {
    let (field, name) = match target {
        Target::Queue(name) => ("queue", name),
        Target::Family(name) => ("family", name),
        Target::Several(_) => return html! {},
    };
    // A form can send only text. For a name that is not UTF-8 there is no form: its address
    // must be written by hand.
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

fn table(ask: &Ask, found: &Found, filter: &Filter, many: bool) -> Markup {
    let state = filter.state.as_str();
    let address = |queue: &[u8], id: &[u8]| {
        Query::default()
            .with("queue", queue)
            .with("id", id)
            .link("message")
    };
    let runs = state == "running";
    let marks = !ask.site.read_only;
    let has = |field: &str| {
        found
            .messages
            .iter()
            .any(|(_, m)| !m.text(field).is_empty())
    };
    // Columns without any value are left out.
    let (types, groups) = (has("type"), has("group"));
    let remarks = runs || ["reason", "error", "note"].iter().any(|field| has(field));
    html! {
        @if found.messages.is_empty() {
            p.none {
                @if found.next.is_some() { "None among those looked at so far: see the next page." }
                @else { "There are no such messages." }
            }
        } @else {
            table {
                thead { tr {
                    @if marks { th { input #all type="checkbox" aria-label="mark all"; } }
                    th { "id" } @if many { th { "queue" } }
                    @if types { th { "type" } } @if groups { th { "group" } }
                    @if runs { th { "consumer" } th { "since" } }
                    th.n { "attempt" } th { (when(state).0) }
                    @if remarks { th { "error or note" } } th { "payload" }
                } }
                tbody {
                    @for (queue, message) in &found.messages {
                        @let id = message.bytes("id").unwrap_or_default();
                        @let payload = message.bytes("payload").unwrap_or_default();
                        tr data-row {
                            @if marks {
                                td.mark { input type="checkbox" name="pick" value=(Chosen::pick(queue, id)) aria-label="mark"; }
                            }
                            td.first { a href=(address(queue, id)) { (name(id)) } }
                            @if many { td.names data-label="queue" { (name(queue)) } }
                            @if types { td.word data-label="type" { (cut(&message.text("type"), 40)) } }
                            @if groups { td.word data-label="group" { (cut(&message.text("group"), 40)) } }
                            @if runs {
                                td.word data-label="consumer" { (cut(&message.text("consumer"), 60)) }
                                td data-label="since" { (time(message.number("started-at"), found.now)) }
                            }
                            td.n data-label="attempt" { (message.count("attempt")) }
                            td data-label=(when(state).0) {
                                (time(message.number(when(state).1), found.now))
                            }
                            @if remarks {
                                td.grow data-label="error or note" {
                                    @let reason = message.text("reason");
                                    @if !reason.is_empty() { (badge(&reason, "")) " " }
                                    @if runs { (bar(message)) " " }
                                    (remark(message))
                                }
                            }
                            td.grow data-label="payload" { code { (cut(&printable(head(payload)), 60)) } }
                        }
                    }
                }
            }
        }
    }
}

/// Returns the line of the last error that says what went wrong, or the note.
fn remark(message: &Record) -> String {
    let error = message.bytes("error").unwrap_or_default();
    let line = match error.is_empty() {
        true => message.bytes("note").unwrap_or_default(),
        false => summary(error),
    };
    cut(&printable(line.get(..2000).unwrap_or(line)), 300)
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
