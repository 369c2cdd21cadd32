//! Dead messages grouped by their errors: of a queue, a family, or all queues.

use maud::{html, Markup};

use super::layout::{layout, trail};
use super::parts::{action, name, time};
use crate::model::change::Target;
use crate::model::errors::{self, ErrorGroup, Found};
use crate::model::queue::Queue;
use crate::server::verb;
use crate::text::{cut, plural, printable};
use crate::time_text::here;
use crate::web::address::{of_target, target};
use crate::web::answer::{Answer, Ask, HttpError};
use crate::web::query::Query;

/// Maximum number of queues that are looked at for the page about all.
const QUEUES: usize = 500;

/// Maximum number of bytes of a line.
const LINE: usize = 300;

/// Shows the page.
pub fn show(ask: &Ask) -> Result<Answer, HttpError> {
    let is_all = ask.query.get("queue").is_none() && ask.query.get("family").is_none();
    let target = match is_all {
        true => Target::Several(with_dead(ask)),
        false => target(&ask.query)?,
    };
    let patience = match ask.query.has("further") {
        true => errors::PATIENCE,
        false => errors::AT_ONCE,
    };
    let (found, now) = ask.read(|server| {
        let queues = target.queues(server)?;
        let now = match queues.first() {
            Some(queue) => Queue::of(queue, server.call(&verb("DQ.INFO", queue))?).map(|q| q.now),
            None => Ok(here()),
        };
        Ok((
            errors::collect(server, &queues, patience)?,
            now.unwrap_or_else(|_| here()),
        ))
    })?;
    let (title, mut steps) = match &target {
        Target::Queue(queue) => (printable(queue), trail(queue)),
        Target::Family(_) => {
            let family = (target.shown(), of_target(&target).link("family"));
            (target.shown(), vec![family])
        }
        Target::Several(_) | Target::Matching(_) => ("all queues".to_owned(), Vec::new()),
    };
    if !is_all {
        steps.push(("errors".to_owned(), ask.here()));
    }
    let content = html! {
        h1 { "Errors of " (title) }
        p.note {
            "Dead messages whose errors are alike: numbers and ids in them may differ. "
            (plural(found.looked, "message")) " looked at"
            @if found.more { ", the newest first; there are more" } "."
            @if found.more && patience < errors::PATIENCE {
                " " a href=(ask.query.without(&["done", "back"]).with("further", b"1").link("errors")) { "Look further" }
            }
        }
        (table(ask, &found, &target, now))
    };
    Ok(layout(ask, &format!("errors of {title}"), &steps, content))
}

/// Returns the queues that have dead messages, those with most first.
fn with_dead(ask: &Ask) -> Vec<Vec<u8>> {
    let live = ask.site.live();
    let dead = |queue: &Queue| queue.count("dead");
    let mut queues: Vec<(u64, Vec<u8>)> = ask
        .entries(&live.board)
        .filter(|entry| dead(&entry.queue) > 0)
        .map(|entry| (dead(&entry.queue), entry.queue.name.clone()))
        .collect();
    queues.sort_by_key(|(dead, _)| std::cmp::Reverse(*dead));
    queues.truncate(QUEUES);
    queues.into_iter().map(|(_, name)| name).collect()
}

fn table(ask: &Ask, found: &Found, target: &Target, now: u64) -> Markup {
    let many = !matches!(target, Target::Queue(_));
    let message = |(queue, id): &(Vec<u8>, Vec<u8>)| {
        let query = Query::default().with("queue", queue).with("id", id);
        query.link("message")
    };
    html! {
        @if found.groups.is_empty() { p.none { "There are no dead messages." } }
        @else {
            table {
                thead { tr {
                    th.n { "messages" } th { "error" } th { "first" } th { "last" }
                    @if many { th { "queues" } } td {}
                } }
                tbody {
                    @for group in &found.groups {
                        tr data-row {
                            td.n.bad data-label="messages" { (group.count) }
                            td.grow {
                                a href=(message(&group.sample)) {
                                    @if group.words.is_empty() { span.none { "no error, reason " (group.reason) } }
                                    @else { (cut(&printable(&group.words), LINE)) }
                                }
                            }
                            td data-label="first" { (time(group.first, now)) }
                            td data-label="last" { (time(group.last, now)) }
                            @if many { td data-label="queues" { (queues(group)) } }
                            td.acts { (acts(ask, group, target)) }
                        }
                    }
                }
            }
        }
    }
}

fn queues(group: &ErrorGroup) -> Markup {
    let these = |queue: &[u8]| {
        let query = Query::default().with("queue", queue).with("state", b"dead");
        query.with("error", &group.pattern).link("messages")
    };
    html! {
        @for (i, (queue, count)) in group.queues.iter().take(10).enumerate() {
            @if i > 0 { ", " }
            a href=(these(queue)) { (name(queue)) } " " span.note { (count) }
        }
        @if group.queues.len() > 10 { " and " (group.queues.len() - 10) " more" }
    }
}

/// Returns the actions on the messages of a group. The server cannot find messages by having
/// no error.
fn acts(ask: &Ask, group: &ErrorGroup, target: &Target) -> Markup {
    let target = match target {
        Target::Several(_) => {
            let names: Vec<Vec<u8>> = group.queues.iter().map(|(name, _)| name.clone()).collect();
            match <[Vec<u8>; 1]>::try_from(names) {
                Ok([one]) => Target::Queue(one),
                Err(names) => Target::Several(names),
            }
        }
        target => target.clone(),
    };
    let these = of_target(&target)
        .with("state", b"dead")
        .with("error", &group.pattern);
    html! {
        @if !group.pattern.is_empty() {
            @if !matches!(target, Target::Several(_)) { a.button href=(these.link("messages")) { "Show" } " " }
            (action(ask, "Redrive these", "", &these.clone().with("act", b"redrive"))) " "
            (action(ask, "Remove these", "", &these.with("act", b"purge")))
        }
    }
}
