//! The pages. Each file has one, which is a function from what was asked to what is
//! answered.

mod children;
mod conditions;
mod confirm;
mod errors;
mod forms;
mod groups;
mod history;
mod job;
mod layout;
mod message;
mod messages;
mod overview;
mod parts;
mod payload;
mod picture;
mod queue;
mod schedules;
mod server;
mod story;
mod tables;
mod types;
mod workers;

use super::action::FormKind;
use super::answer::{Answer, Ask, HttpError};
pub use layout::{error, login, refusal};

/// The way in which a page is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// By its address. An action can lead back to it.
    Seen,
    /// By its address, but it is no page to go back to.
    Read,
    /// By its address, or with a form.
    Asked,
    /// With a form only.
    Sent,
}

/// A page: its address, its word in the bar of all pages, how it is asked for, and what it shows.
type Page = (
    &'static str,
    &'static str,
    Way,
    fn(&Ask) -> Result<Answer, HttpError>,
);

/// All pages. Those with a word are in the bar, in this order.
const PAGES: [Page; 25] = [
    ("", "Queues", Way::Seen, overview::all),
    ("messages", "Find", Way::Seen, messages::show),
    ("errors", "Errors", Way::Seen, errors::show),
    ("workers", "Workers", Way::Seen, workers::show),
    ("schedules", "Schedules", Way::Seen, schedules::show),
    ("server", "Server", Way::Seen, server::show),
    ("family", "", Way::Seen, overview::family),
    ("queue", "", Way::Seen, queue::show),
    ("message", "", Way::Seen, message::show),
    ("types", "", Way::Seen, types::show),
    ("history", "", Way::Seen, history::show),
    ("tree", "", Way::Seen, children::tree),
    // The address of the search in older links.
    ("search", "", Way::Read, messages::search),
    ("payload", "", Way::Read, message::payload),
    ("job", "", Way::Read, job::show),
    ("send", "", Way::Asked, |ask| {
        forms::page(ask, FormKind::Send)
    }),
    ("reschedule", "", Way::Asked, |ask| {
        forms::page(ask, FormKind::Reschedule)
    }),
    ("edit", "", Way::Asked, |ask| {
        forms::page(ask, FormKind::Edit)
    }),
    ("signal", "", Way::Asked, |ask| {
        forms::page(ask, FormKind::Signal)
    }),
    ("schedule", "", Way::Asked, |ask| {
        forms::page(ask, FormKind::Schedule)
    }),
    ("settings", "", Way::Asked, |ask| {
        forms::page(ask, FormKind::Settings)
    }),
    ("limit", "", Way::Asked, |ask| {
        forms::page(ask, FormKind::Limit)
    }),
    // Messages that are marked in a list come with a form.
    ("confirm", "", Way::Asked, confirm::show),
    ("do", "", Way::Sent, confirm::act),
    ("stop", "", Way::Sent, job::stop),
];

/// Returns the address of the page that the visitor came from, if the request names one to which an
/// action can lead back.
fn back(ask: &Ask) -> Option<String> {
    let back = ask.query.text("back");
    let path = match back.split('?').next().unwrap_or_default() {
        "" => return None,
        "./" => "",
        path => path,
    };
    let mut seen = PAGES.iter().filter(|(.., way, _)| *way == Way::Seen);
    seen.any(|(page, ..)| *page == path)
        .then(|| back.to_owned())
}

/// Returns the answer to a request.
pub fn route(ask: &Ask, path: &str, posted: bool) -> Result<Answer, HttpError> {
    let is_so = |way: Way| match posted {
        true => matches!(way, Way::Asked | Way::Sent),
        false => way != Way::Sent,
    };
    let found = PAGES
        .iter()
        .find(|(page, _, way, _)| *page == path && is_so(*way));
    match found {
        Some((.., show)) => show(ask),
        None => Err(HttpError::missing("There is no such page.")),
    }
}
