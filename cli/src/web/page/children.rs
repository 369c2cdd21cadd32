//! The children of a message, and the way from a child to its parent.

use maud::{html, Markup};

use super::parts::{badge, direct, name};
use crate::failure::Failure;
use crate::model::change::Target;
use crate::model::children as model;
use crate::model::error_text::summary;
use crate::model::record::Record;
use crate::server::Server;
use crate::text::{cut, printable};
use crate::web::address::of_target;
use crate::web::answer::Ask;
use crate::web::query::Query;

/// Maximum number of children on the page of a message.
const MOST: usize = 100;
/// Maximum length of a result or an error in the table.
const WIDTH: usize = 80;

/// The children of a message that are known, and whether there are more.
pub type Children = (Vec<Record>, bool);

/// Fetches the children of a message that has some. A user who may not ask for them sees none.
pub fn fetch(
    server: &mut Server,
    queue: &[u8],
    id: &[u8],
    message: Option<&Record>,
) -> Result<Children, Failure> {
    let counts = message.and_then(|message| part(message, "children"));
    if counts.is_none() {
        return Ok(Children::default());
    }
    match model::fetch(server, queue, id, MOST) {
        Err(Failure::Refused(_)) => Ok(Children::default()),
        found => found,
    }
}

/// Returns the link to the parent of a message, if it has one.
pub fn parent(message: &Record) -> Markup {
    let parent = part(message, "parent");
    html! {
        @if let Some(parent) = parent {
            @let (queue, id) = (bytes(&parent, "key"), bytes(&parent, "id"));
            p #parent {
                "A child of " a href=(page(&queue, &id)) { (name(&id)) } " of " (printable(&queue)) "."
            }
        }
    }
}

/// Returns the children of a message: where each is, how it stands, and what came of it.
pub fn children(ask: &Ask, (found, more): &Children) -> Markup {
    html! {
        div #children data-live {
            @if !found.is_empty() {
                h2 { "Children" }
                table {
                    thead { tr { th { "id" } th { "queue" } th { "state" } th { "result or error" } th {} } }
                    tbody {
                        @for child in found {
                            @let (queue, id) = (bytes(child, "key"), bytes(child, "id"));
                            @let state = child.text("state");
                            tr {
                                td.first { a href=(page(&queue, &id)) { (name(&id)) } }
                                td.names data-label="queue" { (name(&queue)) }
                                td data-label="state" { (badge(&state, if state == "dead" { "bad" } else { "" })) }
                                td.grow data-label="result or error" { (outcome(child)) }
                                td.acts {
                                    @if state == "dead" {
                                        (direct(ask, "Redrive", "", &query(&queue, &id).with("act", b"redrive-one")))
                                    }
                                }
                            }
                        }
                    }
                }
                @if *more { p.note { "There are more." } }
            }
        }
    }
}

/// Returns what has come of a child: its error if it failed, or its result.
fn outcome(child: &Record) -> String {
    let text = match child.bytes("error") {
        Some(error) if !error.is_empty() => summary(error),
        _ => child.bytes("result").unwrap_or_default(),
    };
    cut(&printable(text), WIDTH)
}

fn part(message: &Record, field: &str) -> Option<Record> {
    Record::maybe(message.get(field).clone()).ok().flatten()
}

fn bytes(record: &Record, field: &str) -> Vec<u8> {
    record.bytes(field).unwrap_or_default().to_vec()
}

fn query(queue: &[u8], id: &[u8]) -> Query {
    of_target(&Target::Queue(queue.to_vec())).with("id", id)
}

fn page(queue: &[u8], id: &[u8]) -> String {
    query(queue, id).link("message")
}
