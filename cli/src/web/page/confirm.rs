//! Asks for confirmation of an action, with a count of what it would change, and does it.

use maud::html;

use super::{layout, token, Answer, Ask, Trail, Trouble};
use crate::web::action::Action;
use crate::web::query::link;

/// Asks.
pub fn show(ask: &Ask) -> Result<Answer, Trouble> {
    let action = Action::parse(&ask.query)?;
    let count = ask.site.read(|server| action.count(server))?;
    let none = count.is_some_and(|count| count.found == 0 && !count.more);
    let words = format!("{} {}", capital(action.word()), action.what());
    let pauses = action.word() == "pause";
    let content = html! {
        h1 { (capital(action.word())) "?" }
        p.what { (action.what()) }
        @if let Some(count) = count {
            p.count { "This is about " b #count { (count.words()) } "." }
        }
        p { (action.meaning()) }
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

/// Does it, and shows what came of it.
pub fn act(ask: &Ask) -> Result<Answer, Trouble> {
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
