//! The consumers of all queues, and the table of them.

use maud::{html, Markup};

use super::layout::{layout, Trail};
use super::parts::{by_name, name, name_text};
use crate::model::workers::Worker;
use crate::text::{plural, printable};
use crate::time_text::span;
use crate::web::answer::{Answer, Ask, HttpError};
use crate::web::query::{link, Query};

/// Maximum number of consumers that are shown.
const SHOWN: usize = 200;

/// Maximum number of messages that are shown for a consumer.
const HELD: usize = 3;

/// Maximum number of queues that are named for a consumer.
const QUEUES: usize = 5;

/// Shows the page.
pub fn show(ask: &Ask) -> Result<Answer, HttpError> {
    let workers = ask.site.workers(&ask.visitor.rights.scope)?;
    let sought = ask.query.text("q").to_lowercase();
    let is_sought = |one: &&Worker| one.name.to_lowercase().contains(&sought);
    let found: Vec<&Worker> = workers.found.iter().filter(is_sought).collect();
    let (asked, of) = workers.asked;
    let content = html! {
        h1 { "Workers" }
        (by_name("workers", &sought))
        div #workers data-live {
            p.note {
                (plural(found.len() as u64, "consumer")) ", those first that hold a message for the longest time."
                @if asked < of { " " (asked) " of " (of) " queues were asked in the time that this may take." }
                @if workers.more { " Not all running messages were looked at." }
            }
            @if found.is_empty() { p.none { "No queue knows a consumer, and no message runs." } }
            @else { (table(&found, true)) }
        }
    };
    Ok(layout(ask, "workers", &Trail::new(), content))
}

/// Returns the table of consumers: of many queues, or of one.
pub fn table(found: &[&Worker], many: bool) -> Markup {
    html! {
        table {
            thead { tr {
                th { "consumer" } @if many { th { "queues" } } th.n { "running" }
                th.n { "delivered" } th.n { "acked" } th.n { "nacked" } th { "seen" }
                th { "what it holds, and since when" }
            } }
            tbody { @for one in found.iter().take(SHOWN) { (line(one, many)) } }
        }
        @if found.len() > SHOWN { p.note { "These are the first " (SHOWN) "." } }
    }
}

fn line(one: &Worker, many: bool) -> Markup {
    let message = |queue: &[u8], id: &[u8]| {
        let query = Query::default().with("queue", queue).with("id", id);
        query.link("message")
    };
    let ago = |age: Option<u64>| age.map_or("-".to_owned(), |age| span(age) + " ago");
    let rate = |i: usize| one.per_second.map(|rates| format!(" {:.1}/s", rates[i]));
    html! {
        tr data-row[many] {
            td.first { (name_text(one.shown())) }
            @if many {
                td data-label="queues" {
                    @for (i, queue) in one.queues.iter().take(QUEUES).enumerate() {
                        @if i > 0 { ", " }
                        a href=(link("queue", "queue", queue)) { (name(queue)) }
                    }
                    @if one.queues.len() > QUEUES { " and " (one.queues.len() - QUEUES) " more" }
                }
            }
            td.n data-label="running" { (one.running) }
            td.n data-label="delivered" { (one.delivered) }
            td.n data-label="acked" { (one.acked) span.note { (rate(0).unwrap_or_default()) } }
            td.n data-label="nacked" { (one.nacked) span.note { (rate(1).unwrap_or_default()) } }
            td data-label="seen" { time { (ago(one.idle)) } }
            td.holds data-label="holds" {
                @for held in one.held.iter().take(HELD) {
                    div {
                        a href=(message(&held.queue, &held.id)) { (name(&held.id)) } " "
                        span.note { (ago(held.age)) @if many && one.queues.len() > 1 { ", " (printable(&held.queue)) } }
                    }
                }
                @if let (Some(first), true) = (one.held.first(), one.running as usize > HELD) {
                    @let all = Query::default().with("queue", &first.queue).with("state", b"running");
                    a.note href=(all.link("messages")) { "all that run" }
                }
            }
        }
    }
}
