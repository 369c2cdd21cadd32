//! Asks for confirmation of an action, with a count of what it would change, and does it.

use maud::{html, Markup};

use super::layout::{layout, token, Trail};
use crate::failure::Failure;
use crate::model::record::shown;
use crate::text::{cut, printable};
use crate::web::action::schedule::{LastMessage, UNTOLD};
use crate::web::action::Action;
use crate::web::answer::{Answer, Ask, HttpError};
use crate::web::query::link;

/// Number of bytes of a payload that is copied that are shown.
const SHOWN: usize = 2000;

/// Asks.
pub fn show(ask: &Ask) -> Result<Answer, HttpError> {
    let action = Action::parse(&ask.query)?;
    let count = ask.site.read(|server| action.count(server))?;
    let copy = copy(ask, &action)?;
    let none =
        count.is_some_and(|count| count.found == 0 && !count.more) || matches!(copy, Some(Err(_)));
    let words = format!("{} {}", capital(action.word()), action.what());
    let pauses = action.word() == "pause";
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
            p.actions { a.button href=(action.back()) data-key="u" { "Back" } }
        } @else {
            form method="post" action=(ask.query.link("do")) {
                (token(ask))
                @if pauses {
                    label { "for "
                        input name="for" value=(ask.query.text("for")) placeholder="10m; empty: until resumed";
                    }
                }
                p.actions {
                    button.main #yes autofocus { (capital(action.word())) }
                    a.button href=(action.back()) data-key="u" { "No, go back" }
                }
            }
        }
    };
    Ok(layout(ask, &words, &Trail::new(), content))
}

/// Looks for the message that an action would copy. `None` if it copies none, and an error with
/// the reason if there is no such message.
fn copy(ask: &Ask, action: &Action) -> Result<Option<Result<LastMessage, String>>, HttpError> {
    let Action::Fire(queue, name) = action else {
        return Ok(None);
    };
    match ask
        .site
        .read(|server| LastMessage::of_last(server, queue, name))
    {
        Ok(copy) => Ok(Some(Ok(copy))),
        Err(Failure::Mistake(why)) => Ok(Some(Err(why))),
        Err(failure) => Err(failure.into()),
    }
}

/// Shows what is copied, and says what is not.
fn preview(copy: &LastMessage) -> Markup {
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

/// Does it, and shows what came of it.
pub fn act(ask: &Ask) -> Result<Answer, HttpError> {
    let mut query = ask.query.clone();
    // These fields are filled in by the form itself.
    for field in ["for", "payload", "id", "type", "group", "priority", "delay"] {
        if let Some(value) = ask.form.get(field) {
            query = query.without(&[field]).with(field, value);
        }
    }
    let action = Action::parse(&query)?;
    let job = action.begin(&ask.site, &ask.visitor);
    Ok(Answer::To(link("job", "id", job.id.to_string().as_bytes())))
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}
