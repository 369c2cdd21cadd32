//! The parts that all pages have: the frame, the way from the overview to a page, the form
//! of signing in, and the pages about errors.

use maud::{html, Markup, DOCTYPE};

use super::PAGES;
use crate::model::{family, instance};
use crate::text::printable;
use crate::web::answer::{Answer, Ask, HttpError};
use crate::web::jobs::Job;
use crate::web::query::link;

/// The position of a page: the steps from the overview to it, as name and address.
pub type Trail = Vec<(String, String)>;

/// Returns a whole page.
pub fn layout(ask: &Ask, title: &str, trail: &Trail, content: Markup) -> Answer {
    let (place, lost, warnings) = {
        let live = ask.site.live();
        let warnings = instance::warnings(&live.instances);
        (live.place.clone(), live.lost.clone(), warnings)
    };
    Answer::Page(frame(
        title,
        html! {
            header {
                a.home href="./" data-key="o" { "dq" }
                nav.all aria-label="pages" {
                    @for (path, word, ..) in PAGES {
                        @let current = (path == ask.path && trail.is_empty()).then_some("page");
                        @if !word.is_empty() { a href=(if path.is_empty() { "./" } else { path }) aria-current=[current] { (word) } }
                    }
                }
                span.space {}
                form.seek method="get" action="messages" {
                    input type="search" name="id" placeholder="id of a message" aria-label="id of a message" size="14" data-key="/";
                }
                span.place #place data-live { (place) }
                @if ask.only_reads() { span.badge { "read-only" } }
                @if !ask.visitor.user.is_empty() {
                    span.user title=(ask.visitor.rights.role.word()) { (printable(ask.visitor.user.as_bytes())) }
                    @if ask.site.access.has_sessions() {
                        form method="post" action="logout" {
                            (token(ask))
                            button.quiet { "sign out" }
                        }
                    }
                }
                button.quiet #keys data-key="?" type="button" hidden { "keys" }
            }
            @if !ask.only_reads() {
                // Buttons on the page send this form to addresses of their own.
                form #act method="post" { (token(ask)) }
            }
            aside #lost aria-label="warnings" data-live {
                @if let Some(why) = &lost {
                    p.alarm role="alert" { (why) ". The figures are old; trying again." }
                }
                @if let Some(warning) = warnings.first() {
                    p.warning { (warning)
                        @if warnings.len() > 1 { " (" a href="server" { (warnings.len() - 1) " more" } ")" }
                    }
                }
            }
            main {
                @if !trail.is_empty() {
                    nav.trail aria-label="where this is" {
                        a href="./" { "Queues" }
                        @for (name, address) in trail { span.step { "›" } a href=(address) { (name) } }
                    }
                }
                (outcome(ask))
                (content)
            }
        },
    ))
}

/// Shows the result or the progress of the action that has led to this page.
fn outcome(ask: &Ask) -> Markup {
    html! {
        @if let Ok(job) = ask.job("done") {
            (progress(ask, &job))
        }
    }
}

/// Shows the progress of an action, with a button to stop it, or its result.
pub fn progress(ask: &Ask, job: &Job) -> Markup {
    let outcome = job.outcome();
    let kind = match &outcome {
        Some(Err(_)) => "outcome alarm",
        _ => "outcome",
    };
    html! {
        div #job data-live {
            p class=(kind) role="status" {
                (job.progress())
                @if outcome.is_none() && !ask.only_reads() {
                    " " button form="act" formaction=(link("stop", "id", job.id.to_string().as_bytes())) { "Stop" }
                }
            }
        }
    }
}

pub fn frame(title: &str, body: Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · dq" }
                link rel="stylesheet" href="style.css";
                link rel="icon" type="image/svg+xml" href="icon.svg";
                script src="dq.js" defer {}
            }
            body { (body) }
        }
    }
}

/// Returns the field that a form must have to be accepted.
pub fn token(ask: &Ask) -> Markup {
    html! { input type="hidden" name="csrf" value=(ask.visitor.token()); }
}

/// Returns the page about something that went wrong.
pub fn error(ask: &Ask, error: &HttpError) -> Markup {
    let content = html! {
        h1 { "This did not work" }
        p.alarm role="alert" { (error.words) }
        p { a href="./" { "All queues" } }
    };
    match layout(ask, "error", &Trail::new(), content) {
        Answer::Page(markup) => markup,
        _ => Markup::default(),
    }
}

/// Returns the page for a visitor who may see nothing.
pub fn refusal(words: &str) -> Markup {
    frame(
        "no access",
        html! { main { h1 { "No access" } p.alarm { (words) } } },
    )
}

/// Returns the form for name and password.
///
/// `user` is the name that was typed before, and `next` the page to go to.
pub fn login(wrong: Option<&str>, user: &str, next: &str) -> Markup {
    frame(
        "sign in",
        html! {
            main.narrow {
                h1 { "dq" }
                @if let Some(wrong) = wrong { p.alarm role="alert" { (wrong) } }
                form.stack method="post" action="login" {
                    @if !next.is_empty() { input type="hidden" name="next" value=(next); }
                    label { "Name"
                        input name="user" autocomplete="username" value=(user) autofocus[user.is_empty()] required;
                    }
                    label {
                        "Password"
                        input name="password" type="password" autocomplete="current-password"
                            autofocus[!user.is_empty()] required;
                    }
                    button.main { "Sign in" }
                }
            }
        },
    )
}

/// Returns the steps from the overview to a queue.
pub fn trail(name: &[u8]) -> Trail {
    let mut trail = Trail::new();
    if let Some(family) = family::of(name) {
        let shown = printable(&family::shown(family));
        trail.push((shown, link("family", "family", family)));
    }
    trail.push((printable(name), link("queue", "queue", name)));
    trail
}
