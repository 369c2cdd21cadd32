//! The search for a message by its id, over all queues.

use maud::html;

use super::layout::{layout, Trail};
use super::parts::{badge, name, time};
use crate::model::search::{self, Found};
use crate::text::printable;
use crate::web::answer::{Answer, Ask, HttpError};
use crate::web::query::Query;

/// Searches, and shows the messages that were found. A message that is found once is shown itself.
pub fn show(ask: &Ask) -> Result<Answer, HttpError> {
    let id = ask
        .query
        .get("find")
        .map(<[u8]>::to_vec)
        .unwrap_or_default();
    let id = id.trim_ascii().to_vec();
    let names = ask.site.queue_names();
    let found = match id.is_empty() {
        true => Found {
            asked: names.len(),
            ..Found::default()
        },
        false => ask.site.read(|server| search::by_id(server, &names, &id))?,
    };
    let (found, asked) = (found.messages, found.asked);
    let address = |queue: &[u8]| {
        let query = Query::default().with("queue", queue).with("id", &id);
        query.link("message")
    };
    if let ([(queue, _)], true) = (&found[..], asked == names.len()) {
        return Ok(Answer::To(address(queue)));
    }
    let content = html! {
        h1 { "Messages with the id " (printable(&id)) }
        @if found.is_empty() {
            p.none {
                @if id.is_empty() { "Type the whole id of a message." }
                @else { "No queue has a message or a record of this id. It must be the whole id: in a queue, conditions take a pattern." }
            }
        } @else {
            table {
                thead { tr { th { "queue" } th { "state" } th { "type" } th { "group" } th { "sent" } } }
                tbody {
                    @for (queue, message) in &found {
                        @let state = message.text("state");
                        tr data-row {
                            td.first { a href=(address(queue)) { (name(queue)) } }
                            td { (badge(&state, if state == "dead" { "bad" } else { "" })) }
                            td data-label="type" { (message.text("type")) }
                            td data-label="group" { (message.text("group")) }
                            td data-label="sent" { (time(message.number("sent-at"), crate::time_text::here())) }
                        }
                    }
                }
            }
        }
        @if asked < names.len() {
            p.note { (asked) " of " (names.len()) " queues were asked in the time that a search may take." }
        }
    };
    let steps: Trail = vec![("search".to_owned(), ask.here())];
    Ok(layout(ask, "search", &steps, content))
}
