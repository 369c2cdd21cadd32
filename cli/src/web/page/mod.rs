//! The pages. Each file has one, which is a function from what was asked to what is
//! answered.

mod children;
mod confirm;
mod day;
mod errors;
mod forms;
mod groups;
mod job;
mod layout;
mod message;
mod messages;
mod overview;
mod parts;
mod payload;
mod queue;
mod search;
mod server;
mod story;
mod tables;
mod types;

use super::action::FormKind;
use super::answer::{Answer, Ask, HttpError};
use super::api;
pub use layout::{error, login, refusal};

/// Returns the answer to a request.
pub fn route(ask: &Ask, path: &str, posted: bool) -> Result<Answer, HttpError> {
    if let (Some(what), false) = (path.strip_prefix("api/"), posted) {
        return api::route(ask, what);
    }
    match (path, posted) {
        ("", false) => overview::all(ask),
        ("family", false) => overview::family(ask),
        ("queue", false) => queue::show(ask),
        ("messages", false) => messages::show(ask),
        ("message", false) => message::show(ask),
        ("payload", false) => message::payload(ask),
        ("errors", false) => errors::show(ask),
        ("search", false) => search::show(ask),
        ("server", false) => server::show(ask),
        ("types", false) => types::show(ask),
        ("send", _) => forms::page(ask, FormKind::Send),
        ("reschedule", _) => forms::page(ask, FormKind::Reschedule),
        ("edit", _) => forms::page(ask, FormKind::Edit),
        ("signal", _) => forms::page(ask, FormKind::Signal),
        ("schedule", _) => forms::page(ask, FormKind::Schedule),
        ("settings", _) => forms::page(ask, FormKind::Settings),
        // Messages that are marked in a list come with a form.
        ("confirm", _) => confirm::show(ask),
        ("do", true) => confirm::act(ask),
        ("job", false) => job::show(ask),
        ("stop", true) => job::stop(ask),
        _ => Err(HttpError::missing("There is no such page.")),
    }
}
