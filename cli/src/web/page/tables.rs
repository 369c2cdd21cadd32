//! The batches, limits, schedules and consumers of a queue.

use maud::{html, Markup};

use super::parts::{action, badge, direct, name, time, to_form};
use super::workers;
use crate::model::batch::Batch;
use crate::model::limit::Limit;
use crate::model::record::Record;
use crate::model::schedule;
use crate::model::workers::Worker;
use crate::text::printable;
use crate::time_text::{here, Millis};
use crate::web::answer::Ask;
use crate::web::query::{link, Query};

/// Returns the open batches.
pub fn batches(batches: &(Vec<Batch>, bool), target: &Query) -> Markup {
    let (found, more) = batches;
    let members = |batch: &[u8], state: &[u8]| {
        let query = target.clone().with("state", state).with("batch", batch);
        query.link("messages")
    };
    html! {
        div #batches data-live {
            @if !found.is_empty() {
                h2 { "Batches" }
                table {
                    thead { tr {
                        th { "batch" } th.n { "ended" } th.n { "of" } th.n { "pending" }
                        th.n { "running" } th.n { "dead" } th.n { "held by it" }
                    } }
                    tbody {
                        @for one in found {
                            @let (ended, all) = one.progress();
                            tr {
                                td.first { (name(&one.name)) }
                                td.n data-label="ended" { (ended) }
                                td.n data-label="of" { (all) }
                                td.n data-label="pending" { a href=(members(&one.name, b"ready")) { (one.pending) } }
                                td.n data-label="running" { a href=(members(&one.name, b"running")) { (one.running) } }
                                td.n.bad[one.dead > 0] data-label="dead" {
                                    a href=(members(&one.name, b"dead")) { (one.dead) }
                                }
                                td.n data-label="held by it" { (one.held) }
                            }
                        }
                    }
                }
                @if *more { p.note { "There are more." } }
            }
        }
    }
}

/// Returns the limits with names, how much of each is used, and where to make one.
pub fn limits(ask: &Ask, limits: &(Vec<Limit>, bool), target: &Query, now: Millis) -> Markup {
    let (found, more) = limits;
    html! {
        div #limits data-live {
            h2 { "Limits" }
            @if !found.is_empty() {
                table {
                    thead { tr {
                        th { "limit" } th { "rule" } th { "running" } th { "begun" } th.n { "groups that wait" } th { "next free" }
                    } }
                    tbody {
                        @for one in found {
                            tr {
                                td.first {
                                    @if one.rule.as_ref() == Some(&one.name) && ask.may("limit") {
                                        a href=(target.clone().with("limit", &one.name).link("limit")) { (name(&one.name)) }
                                    } @else { (name(&one.name)) }
                                }
                                td data-label="rule" { (one.rule.as_deref().map(printable).unwrap_or_default()) }
                                td data-label="running" { (one.running_words()) }
                                td data-label="begun" { (one.rate_words()) }
                                td.n data-label="groups that wait" { (one.waiting) }
                                td data-label="next free" {
                                    @match one.next_free {
                                        _ if one.is_never => { b.warn { "never" } " for the first that waits: it costs too much" },
                                        Some(at) if at > now => (time(Some(at), now)),
                                        Some(_) => "now",
                                        None if one.running > 0 => "when another message ends",
                                        None => "",
                                    }
                                }
                            }
                        }
                    }
                }
                @if *more { p.note { "There are more." } }
            }
            p.actions { (to_form(ask, "New limit", "", "limit", target)) }
        }
    }
}

/// Returns the schedules of a queue, and where to make one.
pub fn schedules(ask: &Ask, queue: &[u8], found: &[Record], now: Millis) -> Markup {
    let found: Vec<_> = found
        .iter()
        .map(|one| (queue.to_vec(), one.clone()))
        .collect();
    html! {
        div #schedules data-live {
            h2 { "Schedules" }
            @if !found.is_empty() { (schedule_table(ask, &found, Some(now))) }
            p.actions { (to_form(ask, "New schedule", "", "schedule", &Query::default().with("queue", queue))) }
        }
    }
}

/// Returns the table of schedules: of one queue, whose time is `now`, or of many.
pub fn schedule_table(ask: &Ask, found: &[(Vec<u8>, Record)], now: Option<Millis>) -> Markup {
    let many = now.is_none();
    html! {
        table {
            thead { tr {
                th { "schedule" } @if many { th { "queue" } } th { "rule" } th { "next" } th { "last" }
                th.n { "fired" } th.n { "skipped" } td {}
            } }
            tbody { @for (queue, one) in found { (schedule_line(ask, queue, one, now)) } }
        }
    }
}

fn schedule_line(ask: &Ask, queue: &[u8], one: &Record, now: Option<Millis>) -> Markup {
    let many = now.is_none();
    let bytes = one.bytes("name").unwrap_or_default();
    let act = |word: &str| {
        let query = Query::default().with("queue", queue);
        query.with("act", word.as_bytes()).with("schedule", bytes)
    };
    // The times of a queue are those of its own clock.
    let known = || {
        ask.site
            .live()
            .board
            .get(queue)
            .map(|entry| entry.queue.now)
    };
    let now = now.or_else(known).unwrap_or_else(here);
    html! {
        tr data-row[many] {
            td.first { (name(bytes))
                @if one.flag("paused") { " " (badge("paused", "warn")) }
            }
            @if many { td data-label="queue" { a href=(link("queue", "queue", queue)) { (name(queue)) } } }
            td data-label="rule" { code { (schedule::rule(one)) } }
            td data-label="next" { (time(one.number("next-at"), now)) }
            td data-label="last" { (time(one.number("last-at"), now)) }
            td.n data-label="fired" { (one.count("fired")) }
            td.n data-label="skipped" { (one.count("skipped")) }
            td.acts {
                (action(ask, "Run now", "", &act("fire"))) " "
                @if one.flag("paused") { (direct(ask, "Resume", "", &act("resume-schedule"))) }
                @else { (direct(ask, "Pause", "", &act("pause-schedule"))) }
                " "
                (action(ask, "Remove", "", &act("unschedule")))
            }
        }
    }
}

/// Returns the consumers of a queue, and the messages that each of them holds.
pub fn consumers((found, more): &(Vec<Worker>, bool)) -> Markup {
    html! {
        div #consumers data-live {
            @if !found.is_empty() {
                h2 { "Consumers" }
                (workers::table(&found.iter().collect::<Vec<_>>(), false))
                @if *more { p.note { "Not all running messages were looked at." } }
            }
        }
    }
}
