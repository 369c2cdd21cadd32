//! The pages. Each file has one, which is a function from what was asked to what is
//! answered.

mod confirm;
mod job;
mod message;
mod messages;
mod overview;
mod parts;
mod queue;
mod send;

use std::sync::Arc;

use maud::{html, Markup, DOCTYPE};

use super::access::Visitor;
use super::query::Query;
use super::site::Site;
use crate::failure::Failure;
use crate::text::printable;

/// What was asked, and by whom.
pub struct Ask {
    /// What all requests share.
    pub site: Arc<Site>,
    /// Who asks.
    pub visitor: Visitor,
    /// The fields of the address.
    pub query: Query,
    /// The fields of the form.
    pub form: Query,
}

/// What is answered.
pub enum Answer {
    /// A page.
    Page(Markup),
    /// A file to save.
    Bytes(Vec<u8>),
    /// Another page, by its address.
    To(String),
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// The status of HTTP.
    pub status: u16,
    /// The message for the reader: what was wrong, and what was expected.
    pub words: String,
}

impl Trouble {
    /// Creates the answer to an address that makes no sense.
    pub fn mistake(words: &str) -> Trouble {
        Trouble {
            status: 400,
            words: words.to_owned(),
        }
    }

    /// Creates the answer for what does not exist.
    pub fn missing(words: &str) -> Trouble {
        Trouble {
            status: 404,
            words: words.to_owned(),
        }
    }

    /// Creates the answer for what is not allowed.
    pub fn forbidden(words: &str) -> Trouble {
        Trouble {
            status: 403,
            words: words.to_owned(),
        }
    }
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Trouble {
        let status = match &failure {
            Failure::Lost(_) => 503,
            Failure::Mistake(_) => 400,
            _ if failure.is_about_key() => 404,
            _ if failure.is_forbidden() => 403,
            _ => 502,
        };
        Trouble {
            status,
            words: failure.to_string(),
        }
    }
}

/// Returns the answer to a request.
pub fn route(ask: &Ask, path: &str, posted: bool) -> Result<Answer, Trouble> {
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
        _ => Err(Trouble::missing("There is no such page.")),
    }
}

/// Where a page is: the steps from the overview to it, as name and address.
pub type Trail = Vec<(String, String)>;

/// Returns a whole page. `live` is replaced by its newer version every few seconds.
fn layout(ask: &Ask, title: &str, trail: &Trail, content: Markup) -> Answer {
    let (place, lost) = {
        let live = ask.site.live();
        (live.place.clone(), live.lost.clone())
    };
    Answer::Page(frame(
        title,
        html! {
            header {
                a.home href="./" data-key="o" { "dq" }
                nav {
                    @for (name, address) in trail {
                        span.step { "›" }
                        a href=(address) { (name) }
                    }
                }
                span.space {}
                span.place #place data-live { (place) }
                @if ask.site.read_only { span.badge { "read-only" } }
                @if !ask.visitor.user.is_empty() {
                    span.user { (printable(ask.visitor.user.as_bytes())) }
                    @if ask.site.access.has_sessions() {
                        form method="post" action="logout" {
                            (token(ask))
                            button.quiet { "sign out" }
                        }
                    }
                }
                button.quiet #keys data-key="?" type="button" hidden { "keys" }
            }
            div #lost data-live {
                @if let Some(why) = &lost {
                    p.alarm role="alert" { (why) ". The figures are old; trying again." }
                }
            }
            main { (content) }
        },
    ))
}

fn frame(title: &str, body: Markup) -> Markup {
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
fn token(ask: &Ask) -> Markup {
    html! { input type="hidden" name="csrf" value=(ask.visitor.csrf); }
}

/// Returns the page about something that went wrong.
pub fn trouble(ask: &Ask, trouble: &Trouble) -> Markup {
    let content = html! {
        h1 { "This did not work" }
        p.alarm role="alert" { (trouble.words) }
        p { a href="./" { "All queues" } }
    };
    match layout(ask, "error", &Trail::new(), content) {
        Answer::Page(markup) => markup,
        _ => Markup::default(),
    }
}

/// Returns the page for somebody who may see nothing.
pub fn refusal(words: &str) -> Markup {
    frame(
        "no access",
        html! { main { h1 { "No access" } p.alarm { (words) } } },
    )
}

/// Returns the form for name and password.
pub fn login(wrong: Option<&str>) -> Markup {
    frame(
        "sign in",
        html! {
            main.narrow {
                h1 { "dq" }
                @if let Some(wrong) = wrong { p.alarm role="alert" { (wrong) } }
                form.stack method="post" action="login" {
                    label { "Name" input name="user" autocomplete="username" autofocus required; }
                    label {
                        "Password"
                        input name="password" type="password" autocomplete="current-password" required;
                    }
                    button.main { "Sign in" }
                }
            }
        },
    )
}
