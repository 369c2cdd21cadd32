//! The search for a message by its id, over all queues.

use std::time::{Duration, Instant};

use maud::html;

use super::layout::{layout, Trail};
use super::parts::{badge, name, time};
use crate::model::record::Record;
use crate::server::verb;
use crate::text::printable;
use crate::web::answer::{Answer, Ask, HttpError};
use crate::web::query::Query;

/// Number of queues that are asked in one round trip.
const CHUNK: usize = 32;

/// Maximum time for which it is searched.
const PATIENCE: Duration = Duration::from_secs(3);

/// Searches, and shows what was found. A message that is found once is shown itself.
pub fn show(ask: &Ask) -> Result<Answer, HttpError> {
    let id = ask
        .query
        .get("find")
        .map(<[u8]>::to_vec)
        .unwrap_or_default();
    let id = id.trim_ascii().to_vec();
    let names: Vec<Vec<u8>> = {
        let live = ask.site.live();
        let names = live.board.entries().map(|entry| entry.queue.name.clone());
        names.collect()
    };
    let (found, asked) = match id.is_empty() {
        true => (Vec::new(), names.len()),
        false => ask.site.read(|server| {
            let begun = Instant::now();
            let (mut found, mut asked) = (Vec::new(), 0);
            for chunk in names.chunks(CHUNK * server.nodes().len().max(1)) {
                let get = |name: &Vec<u8>| {
                    let mut cmd = verb("DQ.GET", name);
                    cmd.arg(&id);
                    cmd
                };
                let cmds: Vec<_> = chunk.iter().map(get).collect();
                for (name, reply) in chunk.iter().zip(server.pipeline(&cmds)?) {
                    // A queue that is gone by now, or that the user may not read.
                    if let Some(message) = reply.ok().and_then(|reply| Record::maybe(reply).ok()?) {
                        found.push((name.clone(), message));
                    }
                }
                asked += chunk.len();
                if begun.elapsed() > PATIENCE {
                    break;
                }
            }
            Ok((found, asked))
        })?,
    };
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
