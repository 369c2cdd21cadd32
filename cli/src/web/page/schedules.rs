//! The schedules of all queues.

use std::time::Duration;

use maud::html;

use super::layout::{layout, Trail};
use super::parts::by_name;
use super::tables;
use crate::model::keys;
use crate::model::record::Record;
use crate::server::verb;
use crate::text::plural;
use crate::web::answer::{Answer, Ask, HttpError};

/// Maximum time for which queues are asked.
const PATIENCE: Duration = Duration::from_secs(1);

/// Maximum number of schedules that are shown.
const SHOWN: usize = 200;

/// Shows the page: the schedule that sends next comes first.
pub fn show(ask: &Ask) -> Result<Answer, HttpError> {
    let names = ask.queue_names();
    let sought = ask.query.text("q").to_lowercase();
    let replies =
        ask.read(|server| keys::each(server, &names, PATIENCE, |name| verb("DQ.SCHEDULES", name)))?;
    let asked = replies.len();
    let mut found: Vec<(Vec<u8>, Record)> = Vec::new();
    for (queue, reply) in names.iter().zip(replies) {
        // A queue may be gone by now, or closed to the user.
        let Ok(reply) = reply else { continue };
        let schedules = Record::all(reply)?.into_iter();
        found.extend(schedules.map(|one| (queue.clone(), one)));
    }
    found.retain(|(_, one)| one.text("name").to_lowercase().contains(&sought));
    // One that is paused has no next time, and comes last.
    let next = |one: &Record| (one.flag("paused"), one.number("next-at"));
    found.sort_by_key(|(_, one)| next(one));
    let all = found.len();
    found.truncate(SHOWN);
    let content = html! {
        h1 { "Schedules" }
        (by_name("schedules", &sought))
        div #schedules data-live {
            p.note {
                (plural(all as u64, "schedule")) ", the next one first."
                @if all > SHOWN { " These are the first " (SHOWN) "." }
                @if asked < names.len() { " " (asked) " of " (names.len()) " queues were asked in the time that this may take." }
            }
            @if found.is_empty() { p.none { "No queue has a schedule. Its page has the form of a new one." } }
            @else { (tables::schedule_table(ask, &found, None)) }
        }
    };
    Ok(layout(ask, "schedules", &Trail::new(), content))
}
