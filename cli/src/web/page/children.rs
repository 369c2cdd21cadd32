//! The children of a message, the way from a child to its parent, and the tree of a flow.

use maud::{html, Markup};

use super::layout::{layout, trail};
use super::message::named;
use super::parts::{badge, direct, name, name_text, time};
use crate::failure::Failure;
use crate::model::change::Target;
use crate::model::children::{self as model, Name, Node, LEVELS};
use crate::model::coded;
use crate::model::error_text::summary;
use crate::model::record::Record;
use crate::server::Server;
use crate::text::{cut, printable};
use crate::web::address::of_target;
use crate::web::answer::{Answer, Ask, HttpError};
use crate::web::query::Query;

/// Number of children on a page.
const PAGE: usize = 25;
/// Maximum length of a result or an error in the table.
const WIDTH: usize = 80;

/// A page of the children of a message, each with the message itself if the user may read it.
#[derive(Default)]
pub struct Children {
    /// The counts of all children. `None` if it has none.
    counts: Option<Record>,
    found: Vec<(Record, Option<Record>)>,
    next: Option<Vec<u8>>,
}

/// Fetches the children of a message that has some, from a cursor on. A user who may not ask for
/// them sees none.
pub fn fetch(
    server: &mut Server,
    (queue, id): (&[u8], &[u8]),
    from: Option<&[u8]>,
    message: Option<&Record>,
) -> Result<Children, Failure> {
    let counts = message.and_then(|message| model::part(message, "children"));
    if counts.is_none() {
        return Ok(Children::default());
    }
    let (next, found) = match model::fetch(server, (queue, id), from, PAGE) {
        Err(Failure::Refused(_)) => return Ok(Children::default()),
        found => found?,
    };
    let names: Vec<Name> = found.iter().map(model::name).collect();
    let messages = model::messages(server, &names)?;
    Ok(Children {
        counts,
        found: found.into_iter().zip(messages).collect(),
        next,
    })
}

/// Returns the links to the parent of a message and to its batch.
pub fn parent(message: &Record, queue: &[u8]) -> Markup {
    let parent = model::part(message, "parent").map(|parent| model::name(&parent));
    let members = |batch: &[u8]| {
        let query = Query::default().with("queue", queue).with("state", b"any");
        query.with("batch", batch).link("messages")
    };
    html! {
        @if let Some(parent) = parent {
            p #parent {
                "A child of " a href=(page(&parent)) { (name(&parent.1)) } " of " (printable(&parent.0)) ". "
                a href=(query(&parent).link("tree")) { "The whole flow" }
            }
        }
        @if let Some(batch) = message.bytes("batch").filter(|batch| !batch.is_empty()) {
                p { "In the batch " a href=(members(batch)) { (name(batch)) } "." }
        }
    }
}

/// Returns the children of a message: where each is, how it stands, and what came of it.
pub fn children(ask: &Ask, own: &Name, page_of: &Children, now: u64) -> Markup {
    let of_state = |state: &str| {
        let query = Query::default()
            .with("queues", b"*")
            .with("state", state.as_bytes());
        let query = query.with("parent", &own.1).with("parent-queue", &own.0);
        query.link("messages")
    };
    html! {
        div #children data-live {
            @if let Some(counts) = &page_of.counts {
                h2 { "Children" }
                p {
                    (model::words(counts)) ". "
                    @if counts.count("dead") > 0 { a href=(of_state("dead")) { "The dead ones" } ", " }
                    a href=(of_state("any")) { "find some" } ", "
                    a href=(query(own).link("tree")) { "the whole flow" }
                }
                @if page_of.found.is_empty() { p.none { "None is here any more, or none has been sent yet." } }
                @else {
                    table {
                        thead { tr {
                            th { "id" } th { "queue" } th { "type" } th { "state" } th.n { "attempts" }
                            th { "since" } th { "result or error" } td {}
                        } }
                        tbody { @for (child, message) in &page_of.found { (line(ask, child, message.as_ref(), now)) } }
                    }
                }
                nav.pages {
                    @if ask.query.has("children") { a href=(page(own)) { "‹ first page" } }
                    @if let Some(next) = &page_of.next { a href=(query(own).with("children", next).link("message")) { "next page ›" } }
                }
            }
        }
    }
}

fn line(ask: &Ask, child: &Record, message: Option<&Record>, now: u64) -> Markup {
    let own = model::name(child);
    let state = child.text("state");
    let since = message.and_then(|message| since(message, &state));
    html! {
        tr data-row {
            td.first { a href=(page(&own)) { (name(&own.1)) } }
            td data-label="queue" { (name(&own.0)) }
            td data-label="type" { (message.map(|m| name_text(&m.text("type"))).unwrap_or_default()) }
            td data-label="state" { (badge(&state, if state == "dead" { "bad" } else { "" })) }
            td.n data-label="attempts" { (message.map(|m| m.text("attempt")).unwrap_or_default()) }
            td data-label="since" { (time(since, now)) }
            td.grow data-label="result or error" { (outcome(child)) }
            td.acts {
                @if state == "dead" {
                    (direct(ask, "Redrive", "", &query(&own).with("act", b"redrive-one")))
                }
            }
        }
    }
}

/// Returns since when a message is in its state, as far as the server tells that.
fn since(message: &Record, state: &str) -> Option<u64> {
    message.number(match state {
        "running" => "started-at",
        "finished" | "dead" | "cancelled" => "finished-at",
        "ready" | "blocked" => "due-at",
        _ => "sent-at",
    })
}

/// Returns what has come of a child: its error if it failed, or its result.
fn outcome(child: &Record) -> String {
    let clear = coded::texts(child.bytes("key").unwrap_or_default(), child);
    let text = match child.bytes("error") {
        Some(error) if !error.is_empty() => summary(error),
        _ => clear.bytes("result").unwrap_or_default(),
    };
    cut(&printable(text), WIDTH)
}

/// Shows the flow of a message: its first parent, and all that is below that.
pub fn tree(ask: &Ask) -> Result<Answer, HttpError> {
    let own = named(&ask.query)?;
    let nodes = ask.read(|server| model::tree(server, own.clone()))?;
    let mut states: Vec<(&str, usize)> = Vec::new();
    for node in &nodes {
        match states.iter_mut().find(|(state, _)| *state == node.state) {
            Some((_, count)) => *count += 1,
            None => states.push((&node.state, 1)),
        }
    }
    let is_cut = nodes.iter().any(|node| node.more);
    let content = html! {
        h1 { "The flow of " (name(&own.1)) }
        div #tree data-live {
            p.note {
                (nodes.len()) " messages: "
                @for (i, (state, count)) in states.iter().enumerate() { @if i > 0 { ", " } (count) " " (state) }
                @if is_cut { ". It is cut: up to " (LEVELS) " levels and the first 20 children of each are shown" }
                "."
            }
            ol.tree { @for node in &nodes { (leaf(node, node.name == own)) } }
        }
    };
    let mut steps = trail(&own.0);
    steps.push((printable(&own.1), page(&own)));
    steps.push(("flow".to_owned(), ask.here()));
    Ok(layout(ask, "flow", &steps, content))
}

fn leaf(node: &Node, is_own: bool) -> Markup {
    let counts = node
        .message
        .as_ref()
        .and_then(|message| model::part(message, "children"));
    let kind = node
        .message
        .as_ref()
        .map(|message| message.text("type"))
        .unwrap_or_default();
    html! {
        li data-row class={ "level-" (node.level) } {
            a href=(page(&node.name)) aria-current=[is_own.then_some("true")] { (name(&node.name.1)) }
            " " (badge(&node.state, if node.state == "dead" { "bad" } else { "" })) " "
            span.note {
                (printable(&node.name.0))
                @if !kind.is_empty() { ", " (kind) }
                @if let Some(counts) = &counts { ", children: " (model::words(counts)) }
                @if let Some(message) = &node.message {
                    @let outcome = outcome(message);
                    @if !outcome.is_empty() { ": " (outcome) }
                }
                @if node.more { " " a href=(page(&node.name)) { "all of its children" } }
            }
        }
    }
}

fn query((queue, id): &Name) -> Query {
    of_target(&Target::Queue(queue.clone())).with("id", id)
}

fn page(name: &Name) -> String {
    query(name).link("message")
}
