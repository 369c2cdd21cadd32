//! The subject of an address: a queue, a family, or some of their messages.

use super::answer::HttpError;
use super::query::Query;
use crate::model::change::{Target, ALL};
use crate::model::find::Filter;
use crate::time_text::parse_moment;

/// Reads the queue, the family or the pattern of queues of an address.
pub fn target(query: &Query) -> Result<Target, HttpError> {
    let several: Vec<Vec<u8>> = query.all("queue").map(<[u8]>::to_vec).collect();
    match (query.get("queue"), query.get("family")) {
        (None, None) if query.has("queues") => {
            let pattern = query.get("queues").unwrap_or(ALL);
            Ok(Target::Matching(pattern.to_vec()))
        }
        (Some(_), None) if several.len() > 1 => Ok(Target::Several(several)),
        (Some(queue), None) => Ok(Target::Queue(queue.to_vec())),
        (None, Some(family)) => Ok(Target::Family(family.to_vec())),
        _ => Err(HttpError::mistake("the address names no queue")),
    }
}

/// Reads the queue of an address.
pub fn queue(query: &Query) -> Result<Vec<u8>, HttpError> {
    match target(query)? {
        Target::Queue(queue) => Ok(queue),
        _ => Err(HttpError::mistake("this is for one queue, not a family")),
    }
}

/// Returns the address of a page about a queue or a family.
pub fn of_target(target: &Target) -> Query {
    match target {
        Target::Queue(queue) => Query::default().with("queue", queue),
        Target::Family(family) => Query::default().with("family", family),
        Target::Matching(pattern) => Query::default().with("queues", pattern),
        Target::Several(queues) => {
            let add = |query: Query, queue: &Vec<u8>| query.with("queue", queue);
            queues.iter().fold(Query::default(), add)
        }
    }
}

/// Reads the conditions of an address. A parent whose queue is not named is in the queue of
/// the address.
pub fn filter(query: &Query) -> Result<Filter, HttpError> {
    let bytes = |name: &str| query.get(name).map(<[u8]>::to_vec);
    let moment = |name: &str| match query.text(name).trim() {
        "" => Ok(None),
        text => parse_moment(text)
            .map(Some)
            .map_err(|why| HttpError::mistake(&format!("{name}: {why}"))),
    };
    let parent = match bytes("parent") {
        None => None,
        Some(id) => match bytes("parent-queue").or_else(|| bytes("queue")) {
            Some(queue) => Some((queue, id)),
            None => {
                return Err(HttpError::mistake(
                    "parent-queue: name the queue of the parent",
                ))
            }
        },
    };
    let field = bytes("header");
    Ok(Filter {
        id: bytes("id"),
        kind: bytes("type"),
        group: bytes("group"),
        batch: bytes("batch"),
        parent,
        header: field.map(|field| (field, bytes("value").unwrap_or_default())),
        error: bytes("error"),
        payload: bytes("payload"),
        since: moment("since")?,
        until: moment("until")?,
        ..Filter::of_state(query.text("state"))?
    })
}
