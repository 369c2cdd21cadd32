//! The pages. Each file has one, which is a function from what was asked to what is
//! answered.

mod confirm;
mod job;
mod layout;
mod message;
mod messages;
mod overview;
mod parts;
mod queue;
mod send;

use super::answer::{Answer, Ask, HttpError};
pub use layout::{error, login, refusal};

/// Returns the answer to a request.
pub fn route(ask: &Ask, path: &str, posted: bool) -> Result<Answer, HttpError> {
    match (path, posted) {
        ("", false) => overview::all(ask),
        ("family", false) => overview::family(ask),
        ("queue", false) => queue::show(ask),
        ("messages", false) => messages::show(ask),
        ("message", false) => message::show(ask),
        ("payload", false) => message::payload(ask),
        ("send", false) => send::show(ask),
        ("confirm", false) => confirm::show(ask),
        ("do", true) => confirm::act(ask),
        ("job", false) => job::show(ask),
        ("stop", true) => job::stop(ask),
        _ => Err(HttpError::missing("There is no such page.")),
    }
}
