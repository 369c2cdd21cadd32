//! What came of an action, or how far it is.

use std::sync::Arc;

use maud::html;

use super::layout::{layout, token, Trail};
use crate::text::printable;
use crate::web::answer::{Answer, Ask, HttpError};
use crate::web::jobs::Job;
use crate::web::query::link;

fn find(ask: &Ask) -> Result<Arc<Job>, HttpError> {
    let id = ask.query.text("id").parse().unwrap_or(0);
    let job = ask.site.jobs.get(id);
    job.ok_or_else(|| HttpError::missing("This action is not remembered any more."))
}

/// Shows it.
pub fn show(ask: &Ask) -> Result<Answer, HttpError> {
    let job = find(ask)?;
    let outcome = job.outcome();
    let address = link("stop", "id", job.id.to_string().as_bytes());
    let content = html! {
        h1 { (job.words) }
        div #job data-live {
            p class=[matches!(outcome, Some(Err(_))).then_some("alarm")] role="status" {
                (job.progress())
            }
            @if outcome.is_none() && !ask.site.read_only {
                form method="post" action=(address) {
                    (token(ask))
                    button { "Stop" }
                }
            }
        }
        @if !job.user.is_empty() { p.note { "by " (printable(job.user.as_bytes())) } }
        p.actions { a.button.main href=(job.back) data-key="u" { "Go on" } }
    };
    Ok(layout(ask, &job.words, &Trail::new(), content))
}

/// Asks it to end.
pub fn stop(ask: &Ask) -> Result<Answer, HttpError> {
    let job = find(ask)?;
    job.stop();
    Ok(Answer::To(link("job", "id", job.id.to_string().as_bytes())))
}
