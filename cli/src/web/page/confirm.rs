//! Asks for confirmation of an action, with a count of what it would change, and does it.

use maud::{html, Markup};

use super::back;
use super::job::{back_from, with_outcome};
use super::layout::{layout, token, Trail};
use super::parts::capital;
use crate::failure::Failure;
use crate::model::record::shown;
use crate::text::cut;
use crate::text::printable;
use crate::web::action::schedule::{last_message, MessageCopy, UNTOLD};
use crate::web::action::Action;
use crate::web::answer::{Answer, Ask, HttpError};
use crate::web::query::Query;

/// Number of bytes of a payload that is copied that are shown.
const SHOWN: usize = 2000;

/// Returns the fields of the address, with those that the form has filled in.
fn fields(ask: &Ask) -> Query {
    let mut query = ask.query.clone();
    if let Some(time) = ask.form.get("for") {
        query = query.without(&["for"]).with("for", time);
    }
    for pick in ask.form.all("pick") {
        query = query.with("pick", pick);
    }
    query
}

/// Asks.
pub fn show(ask: &Ask) -> Result<Answer, HttpError> {
    let action = Action::parse(&fields(ask))?;
    let count = ask.read(|server| action.count(server))?;
    let copy = copy(ask, &action)?;
    let none = count.is_some_and(|count| count.found == 0 && !count.more);
    let none = (none && !action.is_for_none()) || matches!(copy, Some(Err(_)));
    let words = format!("{} {}", capital(action.word()), action.what());
    let pauses = matches!(
        &action,
        Action::Change(crate::model::change::Change::Pause(..))
    );
    let back = back(ask).unwrap_or_else(|| action.back());
    let content = html! {
        h1 { (capital(action.word())) "?" }
        p.what { (action.what()) }
        @if let Some(count) = count {
            p.count { "This is about " b #count { (count.words()) } "." }
        }
        p { (action.meaning()) }
        @match &copy {
            Some(Ok(copy)) => (preview(copy)),
            Some(Err(why)) => p.alarm role="alert" { "It cannot run now: " (why) "." },
            None => {}
        }
        @if none {
            p.actions { a.button href=(back) data-key="u" { "Back" } }
        } @else {
            form method="post" action=(ask.query.link("do")) {
                (token(ask))
                @for pick in ask.form.all("pick") {
                    input type="hidden" name="pick" value=(printable(pick));
                }
                @if pauses {
                    label { "for "
                        input name="for" value=(ask.query.text("for")) placeholder="10m; empty: until resumed";
                    }
                }
                p.actions {
                    button.main #yes autofocus { (capital(action.word())) }
                    a.button href=(back) data-key="u" { "No, go back" }
                }
            }
        }
    };
    Ok(layout(ask, &words, &Trail::new(), content))
}

/// Looks for the message that an action would copy. `None` if it copies none, and an error with
/// the reason if there is no such message.
fn copy(ask: &Ask, action: &Action) -> Result<Option<Result<MessageCopy, String>>, HttpError> {
    let Action::Fire(queue, name) = action else {
        return Ok(None);
    };
    match ask.read(|server| last_message(server, queue, name)) {
        Ok(copy) => Ok(Some(Ok(copy))),
        Err(Failure::Mistake(why)) => Ok(Some(Err(why))),
        Err(failure) => Err(failure.into()),
    }
}

/// Shows the parts that are copied, and names those that are not.
fn preview(copy: &MessageCopy) -> Markup {
    let payload = copy.message.bytes("payload").unwrap_or_default();
    let head = payload.get(..SHOWN).unwrap_or(payload);
    html! {
        h2 { "The copy" }
        dl #copy {
            dt { "copy of" } dd { (copy.message.text("id")) }
            @for (option, values) in copy.options() {
                dt { (option) }
                dd { (cut(&values.iter().map(|value| shown(value)).collect::<Vec<_>>().join(" "), 400)) }
            }
        }
        pre { (printable(head)) @if head.len() < payload.len() { "…" } }
        p.note {
            "The server does not tell more of the message. If the schedule was made with " (UNTOLD)
            ", the copy is without them, and the settings of the queue apply."
        }
    }
}

/// Runs the action that was confirmed. The page that it leads back to shows the result.
pub fn act(ask: &Ask) -> Result<Answer, HttpError> {
    let action = Action::parse(&fields(ask))?;
    let elsewhere = action.leads_to();
    let job = action.begin(&ask.site, &ask.visitor);
    // A message that is gone has no page to return to.
    let gone = elsewhere.filter(|_| matches!(job.outcome(), Some(Ok(_))));
    Ok(Answer::To(match gone {
        Some(page) => with_outcome(&page, &job),
        None => back_from(ask, &job),
    }))
}
