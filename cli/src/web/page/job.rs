//! The result or the progress of an action that has no page to go back to.

use maud::html;

use super::back;
use super::layout::{layout, progress, Trail};
use crate::text::printable;
use crate::web::answer::{Answer, Ask, HttpError};
use crate::web::jobs::Job;
use crate::web::query::{link, Query};

/// Returns the address of the page that an action leads back to, which shows its result. A visitor who came from none gets a page of its own.
pub fn back_from(ask: &Ask, job: &Job) -> String {
    match back(ask) {
        Some(back) => with_outcome(&back, job),
        None => link("job", "id", job.id.to_string().as_bytes()),
    }
}

/// Returns the address of a page with the result of an action on it.
pub fn with_outcome(address: &str, job: &Job) -> String {
    let (page, fields) = address.split_once('?').unwrap_or((address, ""));
    Query::parse(fields.as_bytes())
        .without(&["done"])
        .with("done", job.id.to_string().as_bytes())
        .link(page)
}

/// Shows the page of an action.
pub fn show(ask: &Ask) -> Result<Answer, HttpError> {
    let job = ask.job("id")?;
    let content = html! {
        h1 { (job.words) }
        (progress(ask, &job))
        @if !job.user.is_empty() { p.note { "by " (printable(job.user.as_bytes())) } }
        p.actions { a.button.main href=(job.back) data-key="u" { "Go on" } }
    };
    Ok(layout(ask, &job.words, &Trail::new(), content))
}

/// Asks an action to end.
pub fn stop(ask: &Ask) -> Result<Answer, HttpError> {
    let job = ask.job("id")?;
    job.stop();
    Ok(Answer::To(link("job", "id", job.id.to_string().as_bytes())))
}
