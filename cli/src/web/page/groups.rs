//! The groups of a queue: which of them are blocked or paused, why, and until when.

use maud::{html, Markup};

use super::message::by;
use super::parts::{action, badge, direct, name, time};
use crate::model::group::{Group, Groups, Wanted};
use crate::model::queue::Queue;
use crate::web::answer::Ask;
use crate::web::query::Query;

/// Returns the groups of one choice.
pub fn groups(
    ask: &Ask,
    groups: &Result<Groups, String>,
    target: &Query,
    wanted: Wanted,
    figures: &Queue,
) -> Markup {
    let choices = Wanted::ALL.map(|choice| {
        let address = target.clone().with("groups", choice.word().as_bytes());
        (choice, address.link("queue"))
    });
    html! {
        h2 { "Groups " span.note { (figures.groups) } }
        p.choices {
            @for (choice, address) in &choices {
                @let words = if *choice == Wanted::Held { "blocked or paused" } else { choice.word() };
                @if *choice == wanted { b { (words) } } @else { a href=(address) { (words) } }
            }
        }
        div #groups data-live {
            @match groups {
                Err(why) => p.note { (why) },
                Ok(groups) if groups.found.is_empty() => p.none {
                    @if wanted == Wanted::Held { "No group is blocked or paused." } @else { "There are none." }
                    @if wanted == Wanted::Held && figures.count("blocked") > 0 {
                        " What is blocked waits for running messages of its groups."
                    }
                    @if groups.more { " Not all were looked at: there are very many." }
                },
                Ok(groups) => {
                    table {
                        thead { tr {
                            th { "group" } th { "state" } th.n { "waiting" } th.n { "running" }
                            th { "first message" } th { "why it waits" } th { "until" } th { "by" } th { "breaker" } td {}
                        } }
                        tbody {
                            @for one in &groups.found { (line(ask, one, target, figures.now)) }
                        }
                    }
                    @if groups.more { p.note { "These are the first " (groups.found.len()) "; there are more." } }
                }
            }
        }
    }
}

fn line(ask: &Ask, one: &Group, target: &Query, now: u64) -> Markup {
    let breaker = one.breaker_words(now);
    let message = |id: &[u8]| target.clone().with("id", id).link("message");
    html! {
        tr {
            td.first { (name(&one.name)) }
            td { (badge(&one.state, if one.state == "paused" { "warn" } else { "" })) }
            td.n data-label="waiting" { (one.waiting) }
            td.n data-label="running" { (one.running) }
            td data-label="first message" {
                @if let Some(head) = &one.head { a href=(message(head)) { (name(head)) } }
            }
            td data-label="why" {
                @if let Some(why) = &one.why { (badge(&why.code, "")) " " (why.why) }
            }
            td data-label="until" { (time(one.why.as_ref().and_then(|why| why.until), now)) }
            td data-label="by" {
                @if let Some(why) = one.why.as_ref().filter(|why| !why.by.is_empty()) { (by(why, target)) }
            }
            td data-label="breaker" {
                @if !breaker.is_empty() { (badge(&breaker, "bad")) }
            }
            td.acts { (acts(ask, one, target, !breaker.is_empty())) }
        }
    }
}

/// Returns the actions on a group at its line. A group that a dead message holds goes on when
/// it is resumed, or the message is redriven.
fn acts(ask: &Ask, one: &Group, target: &Query, has_breaker: bool) -> Markup {
    let act = |word: &str| {
        let query = target.clone().with("act", word.as_bytes());
        query.with("group", &one.name)
    };
    // The group's first pending message waits for a dead one, which only a person can move.
    let holder = one.why.as_ref().filter(|why| {
        why.code == "behind-head"
            && why.until.is_none()
            && one.state == "blocked"
            && !why.by.contains('\\')
    });
    html! {
        @if let Some(why) = holder {
            @let redrive = target.clone().with("act", b"redrive-one").with("id", why.by.as_bytes());
            (direct(ask, "Redrive", "", &redrive)) " "
        }
        @if one.state == "paused" || has_breaker || holder.is_some() {
            (direct(ask, "Resume", "", &act("resume"))) " "
        }
        @if one.state != "paused" { (action(ask, "Pause", "", &act("pause"))) }
    }
}
