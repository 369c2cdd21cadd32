//! One queue: its states, groups, breakers, batches, schedules, consumers and settings.

use maud::{html, Markup};
use redis::Value;

use super::forms;
use super::groups::groups;
use super::history;
use super::layout::{layout, trail};
use super::overview::tiles;
use super::parts::{action, badge, name, time, to_form};
use super::tables::{batches, consumers, limits, schedules};
use crate::failure::Failure;
use crate::model::batch::{self, Batch};
use crate::model::change::Target;
use crate::model::group::{self, Groups, Wanted};
use crate::model::limit::{self, Limit};
use crate::model::queue::{Queue, STATES};
use crate::model::record::{shown, Record};
use crate::model::settings::{self, Setting};
use crate::model::trouble::{self, Trouble};
use crate::model::watch::Entry;
use crate::model::workers::{Worker, Workers};
use crate::server::{verb, Server};
use crate::text::{plural, printable};
use crate::time_text::{span, Millis};
use crate::web::action::FormKind;
use crate::web::address::{of_target, queue};
use crate::web::answer::{Answer, Ask, HttpError};
use crate::web::query::Query;

/// Maximum number of groups, batches and limits that are shown.
const SHOWN: usize = 25;

/// Figures that the top of the page shows already, or that change all the time.
const ABOVE: [&str; 18] = [
    "bytes",
    "groups",
    "consumers",
    "blocked-clients",
    "paused",
    "now",
    "next-due-at",
    "oldest-ready-age",
    "oldest-due-age",
    "lateness-p50",
    "lateness-p99",
    "lateness-max",
    "breakers-open",
    "batches",
    "deadto-error",
    "events-error",
    "detached",
    "waits-for-slot",
];

/// The counters since the queue was made.
const COUNTERS: [&str; 12] = [
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
    "deadto-moved",
];

/// The setting of DQ.CREATE that nothing changes later.
const CLOCK: &str = "clock";

/// All data of a queue from the server. Parts that the user may not ask for are empty.
struct QueuePage {
    info: Record,
    groups: Result<Groups, String>,
    batches: (Vec<Batch>, bool),
    limits: (Vec<Limit>, bool),
    schedules: Vec<Record>,
    consumers: (Vec<Worker>, bool),
    trouble: Vec<Trouble>,
}

fn look(server: &mut Server, name: &[u8], wanted: Wanted) -> Result<QueuePage, Failure> {
    let info = Record::of(server.call(&verb("DQ.INFO", name))?)?;
    let figures = Queue::of(name, Value::Map(info.fields().to_vec()))?;
    let trouble = trouble::look(server, &[figures])?.pop().unwrap_or_default();
    let groups = match group::fetch(server, name, wanted, SHOWN) {
        Ok(groups) => Ok(groups),
        Err(failure @ Failure::Refused(_)) => Err(failure.to_string()),
        Err(failure) => return Err(failure),
    };
    let batches = match batch::fetch(server, name, SHOWN) {
        Err(Failure::Refused(_)) => Default::default(),
        batches => batches?,
    };
    let limits = match limit::fetch(server, name, SHOWN) {
        Err(Failure::Refused(_)) => Default::default(),
        limits => limits?,
    };
    let schedules = match server.call(&verb("DQ.SCHEDULES", name)) {
        Err(Failure::Refused(_)) => Vec::new(),
        schedules => Record::all(schedules?)?,
    };
    let consumers = match info.count("running") + info.count("consumers") {
        0 => Default::default(),
        _ => Workers::of_queue(server, name)?,
    };
    Ok(QueuePage {
        info,
        groups,
        batches,
        limits,
        schedules,
        consumers,
        trouble,
    })
}

/// Shows a queue.
pub fn show(ask: &Ask) -> Result<Answer, HttpError> {
    let key = queue(&ask.query)?;
    let wanted = Wanted::ALL
        .into_iter()
        .find(|wanted| wanted.word() == ask.query.text("groups"))
        .unwrap_or_default();
    let page = ask.read(|server| look(server, &key, wanted))?;
    ask.site.look_at([key.clone()]);
    let figures = Queue::of(&key, Value::Map(page.info.fields().to_vec()))?;
    let target = of_target(&Target::Queue(key.clone()));
    let act = |word: &str| target.clone().with("act", word.as_bytes());
    let fresh = Entry {
        queue: figures.clone(),
        ..Entry::default()
    };
    let top = match ask.site.live().board.get(&key) {
        // The samples of the board, and the figures of this moment.
        Some(entry) => tiles(&entry.with(figures.clone()), &target),
        None => tiles(&fresh, &target),
    };
    let now = figures.now;
    let dead = figures.count("dead");
    let is_empty = figures.counts.iter().all(|count| *count == 0);
    let content = html! {
        h1 { (name(&key)) }
        div #state data-live {
            @if figures.paused { p { (badge("paused", "warn")) " Nothing is delivered." } }
            @if figures.closed { p { (badge("closed", "warn")) " Nothing is added." } }
            @if figures.breakers_open > 0 {
                p { (badge(&plural(figures.breakers_open, "open breaker"), "bad"))
                    " Some messages are not delivered: see the groups below." }
            }
            @for one in figures.trouble.iter().chain(&page.trouble) {
                p { (badge(&one.sentence(), "bad")) " " (remedy(one.code, &target)) }
            }
        }
        section #figures data-live {
            (top)
            p.note {
                @if let Some(age) = figures.oldest_due_age {
                    "the oldest due message has waited " (span(age)) "; "
                }
                "lateness p50 " (ms(figures.lateness[0])) ", p99 " (ms(figures.lateness[1]))
                ", worst " (ms(figures.lateness[2])) "; "
                (plural(figures.blocked_clients, "client")) " waiting in FETCH; "
                (figures.bytes) " bytes of payload; next due " (time(figures.next_due_at, now))
            }
        }
        (history::charts(ask, Some(&key)))
        p.actions #acts data-live {
            @if figures.paused { (action(ask, "Resume", "p", &act("resume"))) }
            @else { (action(ask, "Pause", "p", &act("pause"))) }
            @if dead > 0 {
                (action(ask, "Redrive dead", "r", &act("redrive").with("state", b"dead")))
                a.button href=(target.link("errors")) { "Errors" }
            }
            (to_form(ask, "Send a test message", "n", "send", &target))
            (to_form(ask, "Change settings", "", "settings", &target))
            a.button href=(target.link("types")) { "Run times" }
            @if !is_empty { (action(ask, "Remove everything", "", &act("empty"))) }
            (action(ask, "Delete queue", "", &act("delete")))
        }
        (groups(ask, &page.groups, &target, wanted, &figures))
        (batches(&page.batches, &target))
        (limits(ask, &page.limits, &target, now))
        (schedules(ask, &key, &page.schedules, now))
        (consumers(&page.consumers))
        (settings(&page.info, ask.may("settings").then(|| forms::address(FormKind::Settings, &key)).as_deref()))
    };
    Ok(layout(ask, &printable(&key), &trail(&key), content))
}

/// Returns what can be done about trouble.
fn remedy(code: &str, target: &Query) -> Markup {
    let held = target.clone().with("state", b"held").link("messages");
    html! {
        @match code {
            "dead-child" | "dead-batch" => { "They go on when what is dead is redriven, cancelled or removed: " a href=(held) { "those that are held" } "." },
            "parked" => { "They go on with a signal: " a href=(held) { "those that are held" } "." },
            "never" => "It goes on when the limit is changed, or the message is cancelled.",
            "detached" => "What was cut off when it was restored goes on when its setting names it again.",
            _ => "",
        }
    }
}

fn ms(at: Option<Millis>) -> String {
    at.map_or("-".to_owned(), span)
}

/// Shows the settings of a queue, with a link to the form that changes them, and its counters and
/// other figures.
fn settings(info: &Record, form: Option<&str>) -> Markup {
    let known: Vec<(Setting, String)> = settings::all()
        .filter_map(|setting| Some((setting, setting.value(info)?)))
        .collect();
    let is_other = |name: &str| {
        let elsewhere = [&COUNTERS[..], &STATES, &ABOVE, &[CLOCK]];
        !elsewhere.iter().any(|names| names.contains(&name))
            && !known.iter().any(|(setting, _)| setting.name == name)
    };
    let others = info
        .fields()
        .iter()
        .map(|(key, value)| (shown(key), shown(value)));
    html! {
        div.columns {
            section #settings data-live {
                h2 { "Settings " @if let Some(form) = form { a.note href=(form) { "change" } } }
                dl {
                    @for (setting, value) in &known {
                        dt title=(setting.help) { (setting.name) }
                        dd {
                            @if value.is_empty() { span.none { "-" } }
                            @else if setting.is_usual(value) { (value) }
                            @else { b { (value) } @if !setting.usual.is_empty() { span.note { " usually " (setting.usual) } } }
                        }
                    }
                    dt { (CLOCK) }
                    dd { (info.text(CLOCK)) }
                }
            }
            section #counters data-live {
                h2 { "Since it was made" }
                dl { @for key in COUNTERS { dt { (key) } dd { (info.count(key)) } } }
                h2 { "Now" }
                dl { @for (key, value) in others.filter(|(key, _)| is_other(key)) { dt { (key) } dd { (value) } } }
            }
        }
    }
}
