//! The list of queues and families, and the queues of one family.

use maud::{html, Markup};

use super::layout::{layout, Trail};
use super::parts::{action, badge, chart, late, name, rate};
use crate::model::change::Target;
use crate::model::family;
use crate::model::history::Line;
use crate::model::overview::{rows, Row, Sort};
use crate::model::watch::Entry;
use crate::text::{compact, plural, printable};
use crate::web::address::of_target;
use crate::web::answer::{Answer, Ask, HttpError};
use crate::web::query::{link, Query};

/// Number of queues on a page.
const PAGE: usize = 50;

/// Shows all queues.
pub fn all(ask: &Ask) -> Result<Answer, HttpError> {
    let content = html! {
        h1 { "Queues" }
        (list(ask, None, "./"))
    };
    Ok(layout(ask, "queues", &Trail::new(), content))
}

/// Shows the queues of a family.
pub fn family(ask: &Ask) -> Result<Answer, HttpError> {
    let name = ask.query.get("family").unwrap_or_default();
    let shown = printable(&family::shown(name));
    let target = of_target(&Target::Family(name.to_vec()));
    let sums = {
        let live = ask.site.live();
        let entry = live.board.family(name);
        let entry = entry.ok_or_else(|| HttpError::missing("There is no such family."))?;
        html! {
            section #sums data-live { (tiles(entry, &target)) }
        }
    };
    let act = |word: &str| target.clone().with("act", word.as_bytes());
    let content = html! {
        h1 { (shown) " " (badge("family", "")) }
        (sums)
        p.actions {
            (action(ask, "Pause all", "p", &act("pause")))
            (action(ask, "Resume all", "", &act("resume")))
            (action(ask, "Redrive dead", "r", &act("redrive").with("state", b"dead")))
        }
        h2 { "Partitions" }
        (list(ask, Some(name), &target.link("family")))
    };
    let trail = vec![(shown.clone(), target.link("family"))];
    Ok(layout(ask, &shown, &trail, content))
}

/// Returns the counts by state, each a link to the messages, and the charts.
pub fn tiles(entry: &Entry, target: &Query) -> Markup {
    let queue = &entry.queue;
    let messages = |state: &str| {
        target
            .clone()
            .with("state", state.as_bytes())
            .link("messages")
    };
    let rates = entry.rates();
    html! {
        div.tiles {
            @for state in crate::model::queue::STATES {
                a class={ "tile state-" (state) } href=(messages(state)) {
                    b { (compact(queue.count(state))) }
                    span { (state) }
                }
            }
        }
        div.charts {
            @for (line, words, now) in [
                (Line::Sent, "sent", rate(rates, |rates| rates.sent)),
                (Line::Acked, "acked", rate(rates, |rates| rates.acked)),
                (Line::Waiting, "waiting", compact(queue.pending())),
                (Line::Late, "lateness", late(queue)),
                (Line::Dead, "dead", compact(queue.count("dead"))),
            ] {
                figure {
                    figcaption { (words) " " b { (now) } }
                    (chart(entry, line, words))
                }
            }
        }
    }
}

fn list(ask: &Ask, inside: Option<&[u8]>, here: &str) -> Markup {
    let query = &ask.query;
    let sought = String::from_utf8_lossy(query.get("q").unwrap_or_default()).to_lowercase();
    let sort = Sort::ALL
        .into_iter()
        .find(|sort| sort.word() == query.text("sort"))
        .unwrap_or_default();
    let live = ask.site.live();
    let board = &live.board;
    let mut lines = rows(board, inside, sort);
    let all = lines.len();
    if !sought.is_empty() {
        lines.retain(|row| printable(row.name()).to_lowercase().contains(&sought));
    }
    let pages = lines.len().div_ceil(PAGE).max(1);
    let page = query
        .text("page")
        .parse::<usize>()
        .unwrap_or(1)
        .clamp(1, pages);
    let shown: Vec<&Row> = lines.iter().skip((page - 1) * PAGE).take(PAGE).collect();
    let seen: Vec<Vec<u8>> = shown
        .iter()
        .filter(|row| row.family.is_none())
        .map(|row| row.name().to_vec())
        .collect();
    let of_family = inside.map(|family| Query::default().with("family", family));
    let base = || of_family.clone().unwrap_or_default();
    let found = lines.len();
    let table = html! {
        div #list data-live {
            @if shown.is_empty() {
                p.none {
                    @if !sought.is_empty() { "No queue with such a name." }
                    @else if board.complete { "There are no queues." }
                    @else { "Searching for queues ..." }
                }
            } @else {
                table.queues {
                    thead {
                        tr {
                            th { "queue" }
                            th.n { "ready" } th.n { "later" } th.n { "blocked" } th.n { "running" }
                            th.n { "dead" } th.n { "sent" } th.n { "acked" } th.n { "oldest" }
                            th.wide { "acked" } th.wide { "waiting" } th.wide { "lateness" } th.wide { "dead" }
                        }
                    }
                    tbody { @for row in &shown { (line(row)) } }
                }
            }
        }
    };
    drop(live);
    ask.site.look_at(seen);
    let kept = base()
        .with("q", query.get("q").unwrap_or_default())
        .with("sort", sort.word().as_bytes());
    let page_link = |page: usize| {
        let page = page.to_string();
        let fields = kept.clone().with("page", page.as_bytes());
        fields.link(if inside.is_some() { "family" } else { "./" })
    };
    html! {
        form.bar method="get" action=(here.split('?').next().unwrap_or("./")) {
            @if let Some(family) = inside.and_then(|f| std::str::from_utf8(f).ok()) {
                input type="hidden" name="family" value=(family);
            }
            input #search type="search" name="q" value=(sought) placeholder="part of a name" aria-label="part of a name" data-key="/";
            label { "sorted by "
                select name="sort" {
                    @for one in Sort::ALL {
                        option value=(one.word()) selected[one == sort] { (one.word()) }
                    }
                }
            }
            button { "Show" }
            span.note {
                @if found < all { (found) " of " }
                (plural(all as u64, "line"))
            }
        }
        (table)
        @if pages > 1 {
            nav.pages {
                @if page > 1 { a href=(page_link(page - 1)) data-key="[" { "‹ before" } }
                span { "page " (page) " of " (pages) }
                @if page < pages { a href=(page_link(page + 1)) data-key="]" { "next ›" } }
            }
        }
    }
}

fn line(row: &Row) -> Markup {
    let entry = row.entry;
    let queue = &entry.queue;
    let rates = entry.rates();
    let address = match row.target() {
        Target::Queue(name) => link("queue", "queue", &name),
        Target::Family(name) => link("family", "family", &name),
    };
    let later = queue.count("delayed") + queue.count("retry") + queue.count("held");
    let dead = queue.count("dead");
    html! {
        tr data-row {
            td.first {
                a href=(address) { (name(row.name())) }
                @if row.family.is_some() { " " (badge(&plural(entry.parts as u64, "queue"), "")) }
                @if queue.paused { " " (badge("paused", "warn")) }
                @if queue.closed { " " (badge("closed", "warn")) }
                @if queue.breakers_open > 0 {
                    " " (badge(&plural(queue.breakers_open, "open breaker"), "bad"))
                }
            }
            td.n data-label="ready" { (compact(queue.count("ready"))) }
            td.n data-label="later" { (compact(later)) }
            td.n data-label="blocked" { (compact(queue.count("blocked"))) }
            td.n data-label="running" { (compact(queue.count("running"))) }
            td.n.bad[dead > 0] data-label="dead" { (compact(dead)) }
            td.n data-label="sent" { (rate(rates, |rates| rates.sent)) }
            td.n data-label="acked" { (rate(rates, |rates| rates.acked)) }
            td.n data-label="oldest" { (late(queue)) }
            td.wide { (chart(entry, Line::Acked, "acked")) }
            td.wide { (chart(entry, Line::Waiting, "waiting")) }
            td.wide { (chart(entry, Line::Late, "lateness")) }
            td.wide { (chart(entry, Line::Dead, "dead")) }
        }
    }
}
