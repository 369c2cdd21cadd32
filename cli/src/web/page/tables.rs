//! The batches, limits, schedules and consumers of a queue.

use maud::{html, Markup};

use super::parts::{action, badge, direct, name, time, to_form};
use crate::model::batch::Batch;
use crate::model::consumer::Consumer;
use crate::model::holdings::Holdings;
use crate::model::limit::Limit;
use crate::model::record::Record;
use crate::model::schedule;
use crate::text::printable;
use crate::time_text::Millis;
use crate::web::answer::Ask;
use crate::web::query::Query;

/// Maximum number of consumers that are shown.
const CONSUMERS: usize = 200;

/// Maximum number of messages that are shown for a consumer.
const HELD: usize = 3;

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

/// Returns the limits with names, and how much of each is used.
pub fn limits(limits: &(Vec<Limit>, bool), now: Millis) -> Markup {
    let (found, more) = limits;
    html! {
        div #limits data-live {
            @if !found.is_empty() {
                h2 { "Limits" }
                table {
                    thead { tr {
                        th { "limit" } th { "rule" } th { "running" } th { "begun" } th.n { "groups that wait" } th { "next free" }
                    } }
                    tbody {
                        @for one in found {
                            tr {
                                td.first { (name(&one.name)) }
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
        }
    }
}

/// Returns the schedules, and where to make one.
pub fn schedules(ask: &Ask, found: &[Record], target: &Query, now: Millis) -> Markup {
    let act = |word: &str, schedule: &[u8]| {
        let query = target.clone().with("act", word.as_bytes());
        query.with("schedule", schedule)
    };
    html! {
        div #schedules data-live {
            h2 { "Schedules" }
            @if !found.is_empty() {
                table {
                    thead { tr {
                        th { "schedule" } th { "rule" } th { "next" } th { "last" } th.n { "fired" } th.n { "skipped" } th {}
                    } }
                    tbody {
                        @for one in found {
                            @let bytes = one.bytes("name").unwrap_or_default();
                            tr {
                                td.first { (name(bytes))
                                    @if one.flag("paused") { " " (badge("paused", "warn")) }
                                }
                                td data-label="rule" { code { (schedule::rule(one)) } }
                                td data-label="next" { (time(one.number("next-at"), now)) }
                                td data-label="last" { (time(one.number("last-at"), now)) }
                                td.n data-label="fired" { (one.count("fired")) }
                                td.n data-label="skipped" { (one.count("skipped")) }
                                td.acts {
                                    (action(ask, "Run now", "", &act("fire", bytes))) " "
                                    @if one.flag("paused") { (direct(ask, "Resume", "", &act("resume-schedule", bytes))) }
                                    @else { (direct(ask, "Pause", "", &act("pause-schedule", bytes))) }
                                    " "
                                    (action(ask, "Remove", "", &act("unschedule", bytes)))
                                }
                            }
                        }
                    }
                }
            }
            p.actions { (to_form(ask, "New schedule", "", "schedule", target)) }
        }
    }
}

/// Returns the consumers, and the messages that each of them holds.
pub fn consumers(found: &[Consumer], holdings: &Holdings, target: &Query, now: Millis) -> Markup {
    let message = |id: &[u8]| target.clone().with("id", id).link("message");
    html! {
        div #consumers data-live {
            @if !found.is_empty() {
                h2 { "Consumers" }
                table {
                    thead { tr {
                        th { "consumer" } th.n { "running" } th.n { "delivered" } th.n { "acked" }
                        th.n { "nacked" } th { "seen" } th { "what it holds, and since when" }
                    } }
                    tbody {
                        @for one in found.iter().take(CONSUMERS) {
                            @let held = holdings.of(&one.name);
                            tr {
                                td.first { (one.name) }
                                td.n data-label="running" { (one.running) }
                                td.n data-label="delivered" { (one.delivered) }
                                td.n data-label="acked" { (one.acked) }
                                td.n data-label="nacked" { (one.nacked) }
                                // The rows were asked for a moment later than the clock.
                                td data-label="seen" { (time(one.last_seen.map(|at| at.min(now)), now)) }
                                td.grow data-label="holds" {
                                    @for (id, since) in held.iter().take(HELD) {
                                        div { a href=(message(id)) { (name(id)) } " " span.note { (time(since.map(|at| at.min(now)), now)) } }
                                    }
                                    @if one.running as usize > held.len().min(HELD) && !held.is_empty() {
                                        a.note href=(target.clone().with("state", b"running").link("messages")) { "all that run" }
                                    }
                                }
                            }
                        }
                    }
                }
                @if holdings.more { p.note { "Not all running messages were looked at." } }
            }
        }
    }
}
