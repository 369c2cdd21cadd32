//! One queue: its states, groups, breakers, batches, schedules, consumers and settings.

use maud::{html, Markup};
use redis::Value;

use super::layout::{layout, trail};
use super::overview::tiles;
use super::parts::{action, badge, name, time};
use crate::failure::Failure;
use crate::model::batch::{self, Batch};
use crate::model::change::Target;
use crate::model::consumer::{self, Consumer};
use crate::model::group::{self, Groups, Wanted};
use crate::model::queue::{Queue, STATES};
use crate::model::record::{shown, Record};
use crate::model::watch::Entry;
use crate::server::{verb, Server};
use crate::text::{plural, printable};
use crate::time_text::{span, Millis};
use crate::web::address::{of_target, queue};
use crate::web::answer::{Answer, Ask, HttpError};
use crate::web::query::Query;

/// Maximum number of groups and batches that are shown.
const SHOWN: usize = 25;

/// Figures that the top of the page shows already, or that change all the time.
const NO_SETTINGS: [&str; 12] = [
    "bytes",
    "groups",
    "consumers",
    "blocked-clients",
    "paused",
    "now",
    "next-due-at",
    "oldest-ready-age",
    "lateness-p50",
    "lateness-p99",
    "lateness-max",
    "breakers-open",
];

/// The counters since the queue was made.
const COUNTERS: [&str; 11] = [
    "sent",
    "duplicates",
    "delivered",
    "redelivered",
    "acked",
    "nacked",
    "timeouts",
    "deaths",
    "expired",
    "cancellations",
    "redriven",
];

/// Everything that the server says of a queue. What the user may not ask for is empty.
struct QueuePage {
    info: Record,
    groups: Result<Groups, String>,
    batches: (Vec<Batch>, bool),
    schedules: Vec<Record>,
    consumers: Vec<Consumer>,
}

fn look(server: &mut Server, name: &[u8], wanted: Wanted) -> Result<QueuePage, Failure> {
    let info = Record::of(server.call(&verb("DQ.INFO", name))?)?;
    let groups = match group::fetch(server, name, wanted, SHOWN) {
        Ok(groups) => Ok(groups),
        Err(failure @ Failure::Refused(_)) => Err(failure.to_string()),
        Err(failure) => return Err(failure),
    };
    let batches = match batch::fetch(server, name, SHOWN) {
        Err(Failure::Refused(_)) => Default::default(),
        batches => batches?,
    };
    let schedules = match server.call(&verb("DQ.SCHEDULES", name)) {
        Err(Failure::Refused(_)) => Vec::new(),
        schedules => Record::all(schedules?)?,
    };
    Ok(QueuePage {
        info,
        groups,
        batches,
        schedules,
        consumers: consumer::fetch(server, name)?,
    })
}

/// Shows a queue.
pub fn show(ask: &Ask) -> Result<Answer, HttpError> {
    let key = queue(&ask.query)?;
    let wanted = Wanted::ALL
        .into_iter()
        .find(|wanted| wanted.word() == ask.query.text("groups"))
        .unwrap_or_default();
    let page = ask.site.read(|server| look(server, &key, wanted))?;
    ask.site.look_at([key.clone()]);
    let figures = Queue::of(&key, Value::Map(page.info.fields().to_vec()))?;
    let target = of_target(&Target::Queue(key.clone()));
    let act = |word: &str| target.clone().with("act", word.as_bytes());
    let fresh = Entry {
        queue: figures.clone(),
        ..Entry::default()
    };
    let top = {
        let live = ask.site.live();
        match live.board.get(&key) {
            // The samples of the board, and the figures of this moment.
            Some(entry) => tiles(&entry.with(figures.clone()), &target),
            None => tiles(&fresh, &target),
        }
    };
    let now = figures.now;
    let content = html! {
        h1 { (name(&key)) }
        div #state data-live {
            @if figures.paused { p { (badge("paused", "warn")) " Nothing is delivered." } }
            @if figures.closed { p { (badge("closed", "warn")) " Nothing is added." } }
            @if figures.breakers_open > 0 {
                p { (badge(&plural(figures.breakers_open, "open breaker"), "bad"))
                    " Some messages are not delivered: see the groups below." }
            }
        }
        section #figures data-live {
            (top)
            p.note {
                "lateness p50 " (ms(figures.lateness[0])) ", p99 " (ms(figures.lateness[1]))
                ", worst " (ms(figures.lateness[2])) "; "
                (plural(figures.blocked_clients, "client")) " waiting in FETCH; "
                (figures.bytes) " bytes of payload; next due " (time(figures.next_due_at, now))
            }
        }
        p.actions {
            @if figures.paused { (action(ask, "Resume", "p", &act("resume"))) }
            @else { (action(ask, "Pause", "p", &act("pause"))) }
            (action(ask, "Redrive dead", "r", &act("redrive").with("state", b"dead")))
            @if !ask.site.read_only {
                a.button href=(target.link("send")) data-key="n" { "Send a test message" }
            }
            (action(ask, "Remove everything", "", &act("empty")))
        }
        (groups(ask, &page.groups, &target, wanted, &figures))
        (batches(&page.batches, &target))
        (schedules(ask, &page.schedules, &act("fire"), now))
        (consumers(&page.consumers, now))
        (settings(&page.info))
    };
    Ok(layout(ask, &printable(&key), &trail(&key), content))
}

fn ms(at: Option<Millis>) -> String {
    at.map_or("-".to_owned(), span)
}

fn groups(
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
    let message = |id: &[u8]| target.clone().with("id", id).link("message");
    let act = |word: &str, group: &[u8]| {
        target
            .clone()
            .with("act", word.as_bytes())
            .with("group", group)
    };
    html! {
        h2 { "Groups " span.note { (figures.groups) } }
        p.choices {
            @for (choice, address) in &choices {
                @if *choice == wanted { b { (choice.word()) } } @else { a href=(address) { (choice.word()) } }
            }
        }
        div #groups data-live {
            @match groups {
                Err(why) => p.note { (why) },
                Ok(groups) if groups.found.is_empty() => p.none {
                    @if wanted == Wanted::Held { "No group is held or paused." } @else { "There are none." }
                    @if groups.more { " Not all were page at: there are very many." }
                },
                Ok(groups) => {
                    table {
                        thead { tr {
                            th { "group" } th { "state" } th.n { "waiting" } th.n { "running" }
                            th { "first message" } th { "why it waits" } th { "until" } th { "by" } th { "breaker" } th {}
                        } }
                        tbody {
                            @for one in &groups.found {
                                @let breaker = one.breaker_words(figures.now);
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
                                    td data-label="until" { (time(one.why.as_ref().and_then(|why| why.until), figures.now)) }
                                    td data-label="by" { (one.why.as_ref().map_or("", |why| why.by.as_str())) }
                                    td data-label="breaker" {
                                        @if !breaker.is_empty() { (badge(&breaker, "bad")) }
                                    }
                                    td.acts {
                                        @if one.state == "paused" || !breaker.is_empty() {
                                            (action(ask, "Resume", "", &act("resume", &one.name)))
                                        } @else {
                                            (action(ask, "Pause", "", &act("pause", &one.name)))
                                        }
                                    }
                                }
                            }
                        }
                    }
                    @if groups.more { p.note { "These are the first " (groups.found.len()) "; there are more." } }
                }
            }
        }
    }
}

fn batches(batches: &(Vec<Batch>, bool), target: &Query) -> Markup {
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

fn schedules(ask: &Ask, found: &[Record], fire: &Query, now: Millis) -> Markup {
    html! {
        div #schedules data-live {
            @if !found.is_empty() {
                h2 { "Schedules" }
                table {
                    thead { tr {
                        th { "schedule" } th { "rule" } th { "next" } th { "last" } th.n { "fired" } th {}
                    } }
                    tbody {
                        @for one in found {
                            @let bytes = one.bytes("name").unwrap_or_default();
                            tr {
                                td.first { (name(bytes)) }
                                td data-label="rule" { code { (one.text("definition")) } }
                                td data-label="next" { (time(one.number("next-at"), now)) }
                                td data-label="last" { (time(one.number("last-at"), now)) }
                                td.n data-label="fired" { (one.count("fired")) }
                                td.acts { (action(ask, "Run now", "", &fire.clone().with("schedule", bytes))) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn consumers(found: &[Consumer], now: Millis) -> Markup {
    html! {
        div #consumers data-live {
            @if !found.is_empty() {
                h2 { "Consumers" }
                table {
                    thead { tr {
                        th { "consumer" } th.n { "running" } th.n { "delivered" } th.n { "acked" }
                        th.n { "nacked" } th { "seen" }
                    } }
                    tbody {
                        @for one in found.iter().take(200) {
                            tr {
                                td.first { (one.name) }
                                td.n data-label="running" { (one.running) }
                                td.n data-label="delivered" { (one.delivered) }
                                td.n data-label="acked" { (one.acked) }
                                td.n data-label="nacked" { (one.nacked) }
                                // They were asked for a moment later than the clock.
                                td data-label="seen" { (time(one.last_seen.map(|at| at.min(now)), now)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn settings(info: &Record) -> Markup {
    let field = |name: &Value| shown(name);
    let is_counter = |name: &str| COUNTERS.contains(&name);
    let is_setting = |name: &str| {
        !is_counter(name)
            && !STATES.contains(&name)
            && !NO_SETTINGS.contains(&name)
            && name != "batches"
    };
    html! {
        div.columns {
            section {
                h2 { "Settings" }
                dl {
                    @for (key, value) in info.fields() {
                        @let key = field(key);
                        @if is_setting(&key) {
                            dt { (key) }
                            dd { @if *value == Value::Nil { span.none { "-" } } @else { (shown(value)) } }
                        }
                    }
                }
            }
            section #counters data-live {
                h2 { "Since it was made" }
                dl {
                    @for key in COUNTERS { dt { (key) } dd { (info.count(key)) } }
                }
            }
        }
    }
}
