//! The messages of queues, by state and by conditions, a page at a time.

use std::time::{Duration, Instant};

use maud::{html, Markup};

use super::conditions;
use super::layout::{layout, token, trail};
use super::parts::{action, badge, bar, capital, name, name_text, time};
use crate::failure::Failure;
use crate::model::change::Target;
use crate::model::coded;
use crate::model::error_text::summary;
use crate::model::find::{self, Act, Filter, Step};
use crate::model::queue::{Queue, STATES};
use crate::model::record::Record;
use crate::model::search::{self, Place, Walk, ANY};
use crate::server::{verb, Server};
use crate::text::{cut, printable};
use crate::web::action::chosen::{Chosen, OneAct};
use crate::web::action::verb_of;
use crate::web::address::{filter, of_target, target};
use crate::web::answer::{Answer, Ask, HttpError};
use crate::web::query::Query;

/// Number of messages on a page.
const PAGE: usize = 25;

/// Number of messages that one step looks at if there are conditions.
const STEP: usize = 200;

/// Maximum time for which one page is looked for.
const PATIENCE: Duration = Duration::from_millis(700);

/// A page of messages.
#[derive(Default)]
struct Found {
    messages: Vec<(Vec<u8>, Record)>,
    /// The place at which the next page begins, and the cursor there.
    next: Option<(Place, Vec<u8>)>,
    /// How many places were looked at, and how many there are.
    progress: (usize, usize),
    now: u64,
}

/// Shows the messages of a queue, of a family, or of all queues that a pattern names.
pub fn show(ask: &Ask) -> Result<Answer, HttpError> {
    let named = ["queue", "family", "queues"];
    let query = match named.iter().any(|name| ask.query.has(name)) {
        true => ask.query.clone(),
        false => ask.query.clone().with("queues", b"*"),
    };
    let query = match query.get("state") {
        Some(_) => query,
        None => query.without(&["state"]).with("state", ANY.as_bytes()),
    };
    let target = target(&query)?;
    let filter = filter(&query)?;
    let many = !matches!(target, Target::Queue(_));
    // All messages of all queues are no question.
    let is_find = matches!(target, Target::Matching(_));
    let is_asked = !is_find || filter.state != ANY || !filter.is_whole_state();
    let found = match is_asked {
        true => ask.read(|server| look(ask, server, &target, &filter, &query))?,
        false => Found::default(),
    };
    if let ([(queue, message)], Some(_), true) =
        (&found.messages[..], search::whole_id(&filter), many)
    {
        if found.progress.0 == found.progress.1 {
            let id = message.bytes("id").unwrap_or_default();
            let message = Query::default().with("queue", queue).with("id", id);
            return Ok(Answer::To(message.link("message")));
        }
    }
    let here = query.without(&["from", "at", "cursor", "done"]);
    let shown = target.shown();
    let base = of_target(&target);
    let mut steps = match &target {
        Target::Queue(name) => trail(name),
        Target::Family(_) => vec![(shown.clone(), base.link("family"))],
        Target::Several(_) | Target::Matching(_) => Vec::new(),
    };
    if !steps.is_empty() {
        steps.push((filter.state.clone(), here.link("messages")));
    }
    let next = found.next.as_ref().map(|(place, cursor)| {
        let query = here.clone().with("from", &place.queue);
        let query = query.with("at", place.state.as_bytes());
        query.with("cursor", cursor).link("messages")
    });
    let acts = [Act::Redrive, Act::Cancel, Act::Purge];
    let title = match filter.state.as_str() {
        ANY => format!("Messages of {shown}"),
        state => format!("{state} messages of {shown}"),
    };
    let content = html! {
        h1 { (title) }
        p.choices {
            @for state in STATES.into_iter().chain([ANY]) {
                @let kept = if is_find { here.without(&["state"]) } else { base.clone() };
                @let address = kept.with("state", state.as_bytes()).link("messages");
                @if state == filter.state && (is_find || filter.is_whole_state()) { b { (state) } } @else { a href=(address) { (state) } }
            }
        }
        (conditions::form(&target, &filter, &query))
        p.actions {
            @if filter.state == "dead" { a.button href=(errors(&target)) { "By error" } }
            @for act in acts {
                @if act.fits(&filter.state) && !found.messages.is_empty() {
                    @let words = match filter.is_whole_state() {
                        true => format!("{} all", capital(verb_of(act))),
                        false => format!("{} all that match", capital(verb_of(act))),
                    };
                    @let key = if act == Act::Redrive { "r" } else { "" };
                    (action(ask, &words, key, &here.clone().with("act", act.word().as_bytes())))
                }
            }
        }
        @if is_asked { (marked(ask, &found, &filter.state, table(ask, &found, &filter, many))) }
        nav.pages {
            @if query.has("from") { a href=(here.link("messages")) data-key="[" { "‹ first page" } }
            @if let Some(next) = &next {
                @if found.messages.is_empty() {
                    // A script goes on by itself until there is something to see.
                    a #go-on href=(next) data-key="]" { "Go on ›" }
                } @else { a href=(next) data-key="]" { "next page ›" } }
                @if many {
                    @let (done, all) = found.progress;
                    progress max=(all) value=(done) {} (done) " of " (all) " queues and states"
                }
            }
        }
    };
    Ok(layout(ask, &title, &steps, content))
}

/// Leads to the search for an id.
pub fn search(ask: &Ask) -> Result<Answer, HttpError> {
    let id = ask.query.get("find").unwrap_or_default().trim_ascii();
    Ok(Answer::To(Query::default().with("id", id).link("messages")))
}

/// Returns the address of the errors of a target. Those of a pattern are those of all queues.
fn errors(target: &Target) -> String {
    match target {
        Target::Matching(_) | Target::Several(_) => "errors".to_owned(),
        target => of_target(target).link("errors"),
    }
}

/// Puts a list into a form, with buttons for the messages that are marked in it.
fn marked(ask: &Ask, found: &Found, state: &str, list: Markup) -> Markup {
    let acts = [
        OneAct::Redrive,
        OneAct::Now,
        OneAct::EndLease,
        OneAct::Cancel,
        OneAct::Purge,
    ];
    let address = |act: OneAct| {
        let query = Query::default().with("act", act.name().as_bytes());
        query.with("back", ask.here().as_bytes()).link("confirm")
    };
    html! {
        @if ask.only_reads() || found.messages.is_empty() { (list) }
        @else {
            form method="post" action="confirm" {
                (token(ask))
                (list)
                p.actions.marked {
                    span.note { "with those that are marked:" }
                    @for act in acts {
                        @if act.fits(state) { button formaction=(address(act)) { (capital(act.word())) } }
                    }
                }
            }
        }
    }
}

/// Looks for the messages of one page. It ends early, with what there is, if that takes
/// long: with conditions that hardly any message meets.
fn look(
    ask: &Ask,
    server: &mut Server,
    target: &Target,
    filter: &Filter,
    query: &Query,
) -> Result<Found, Failure> {
    let begun = Instant::now();
    let mut found = Found::default();
    if let (Some(id), Target::Matching(_)) = (search::whole_id(filter), target) {
        let names = ask.queue_names();
        let of_id = search::by_id(server, &names, id)?;
        found.messages = of_id.messages;
        found.progress = (of_id.asked, names.len());
        found.now = crate::time_text::here();
        return Ok(found);
    }
    let many = !matches!(target, Target::Queue(_));
    let step = Step {
        cursor: query.get("cursor").map(<[u8]>::to_vec),
        count: if filter.is_whole_state() { PAGE } else { STEP },
        newest_first: !query.text("newest").is_empty(),
    };
    let begin = Place::of(query.get("from").unwrap_or_default(), query.text("at"));
    let places = ask.site.places(server, target, &filter.state)?;
    let mut walk = Walk::from(places, &begin.unwrap_or_default(), step);
    while let Some((place, step)) = walk.now() {
        let asked = page_of(server, place, filter, step, &mut found.now);
        let (next, messages) = match asked {
            // One of several queues is gone by now, or the user may not read it.
            Err(Failure::Refused(_)) if many => (None, Vec::new()),
            asked => asked?,
        };
        let messages = messages
            .into_iter()
            .map(|message| (place.queue.clone(), message));
        found.messages.extend(messages);
        walk.go_on(next);
        if found.messages.len() >= PAGE || begun.elapsed() > PATIENCE {
            break;
        }
    }
    let position =
        |(place, step): (&Place, &Step)| (place.clone(), step.cursor.clone().unwrap_or_default());
    found.next = walk.now().map(position);
    found.progress = walk.progress();
    Ok(found)
}

/// Asks a queue for messages, and for the time of its clock, if that is not known yet.
fn page_of(
    server: &mut Server,
    place: &Place,
    filter: &Filter,
    step: &Step,
    now: &mut u64,
) -> Result<(Option<Vec<u8>>, Vec<Record>), Failure> {
    if *now == 0 {
        *now = Queue::of(&place.queue, server.call(&verb("DQ.INFO", &place.queue))?)?.now;
    }
    find::messages(server, place, filter, step)
}

fn table(ask: &Ask, found: &Found, filter: &Filter, many: bool) -> Markup {
    let state = filter.state.as_str();
    let address = |queue: &[u8], id: &[u8]| {
        Query::default()
            .with("queue", queue)
            .with("id", id)
            .link("message")
    };
    let (runs, any) = (state == "running", state == ANY);
    let marks = !ask.only_reads();
    let has = |field: &str| {
        found
            .messages
            .iter()
            .any(|(_, m)| !m.text(field).is_empty())
    };
    // Columns without any value are left out.
    let (types, groups) = (has("type"), has("group"));
    let remarks = runs || ["reason", "error", "note"].iter().any(|field| has(field));
    html! {
        @if found.messages.is_empty() {
            p.none {
                @if found.next.is_some() { "None among those looked at so far." }
                @else { "There are no such messages." }
            }
        } @else {
            table {
                thead { tr {
                    @if marks { th { input #all type="checkbox" aria-label="mark all"; } }
                    th { "id" @if many { ", queue" } } @if any { th { "state" } }
                    @if types { th { "type" } } @if groups { th { "group" } }
                    @if runs { th { "consumer" } th { "since" } }
                    th.n { "attempt" } th { (when(state).0) }
                    th { @if remarks { "error or note, " } "payload" }
                } }
                tbody {
                    @for (queue, message) in &found.messages {
                        @let id = message.bytes("id").unwrap_or_default();
                        tr data-row {
                            @if marks {
                                td.mark { input type="checkbox" name="pick" value=(Chosen::pick(queue, id)) aria-label="mark"; }
                            }
                            td.first {
                                a href=(address(queue, id)) { (name(id)) }
                                @if many { div.note data-label="queue" { (name(queue)) } }
                            }
                            @let own = message.text("state");
                            @if any { td data-label="state" { (badge(&own, if own == "dead" { "bad" } else { "" })) } }
                            @if types { td data-label="type" { (name_text(&message.text("type"))) } }
                            @if groups { td data-label="group" { (name_text(&message.text("group"))) } }
                            @if runs {
                                td data-label="consumer" { (name_text(&message.text("consumer"))) }
                                td data-label="since" { (time(message.number("started-at"), found.now)) }
                            }
                            td.n data-label="attempt" { (message.count("attempt")) }
                            td data-label=(when(state).0) {
                                @if any { (when(&own).0) " " }
                                (time(message.number(when(&own).1), found.now))
                            }
                            td.grow {
                                @if remarks {
                                    div data-label="error or note" {
                                        @let reason = message.text("reason");
                                        @if !reason.is_empty() { (badge(&reason, "")) " " }
                                        @if runs { (bar(message)) " " }
                                        (remark(&coded::texts(queue, message)))
                                    }
                                }
                                code data-label="payload" { (cut(&coded::line(queue, message), 60)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Returns the line of the last error that says what went wrong, or the note.
fn remark(message: &Record) -> String {
    let error = message.bytes("error").unwrap_or_default();
    let line = match error.is_empty() {
        true => message.bytes("note").unwrap_or_default(),
        false => summary(error),
    };
    cut(&printable(line.get(..2000).unwrap_or(line)), 300)
}

/// Returns the word for the time that orders a state, and its field in DQ.GET.
fn when(state: &str) -> (&'static str, &'static str) {
    match state {
        "running" => ("lease ends", "lease-until"),
        "finished" | "cancelled" => ("ended", "finished-at"),
        "dead" => ("died", "finished-at"),
        "held" => ("sent", "sent-at"),
        ANY => ("time", ""),
        _ => ("due", "due-at"),
    }
}
