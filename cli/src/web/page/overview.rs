//! The list of queues and families, and the queues of one family.

use clap::ValueEnum;
use maud::{html, Markup};

use super::history;
use super::layout::{layout, Trail};
use super::parts::{action, badge, chart, late, name, rate, small_chart};
use crate::model::change::Target;
use crate::model::family;
use crate::model::history::{Line, Rates};
use crate::model::overview::{rows, Row, Sort};
use crate::model::queue::Queue;
use crate::model::watch::{Board, Entry};
use crate::text::{compact, plural, printable};
use crate::time_text::{span, Millis};
use crate::web::address::of_target;
use crate::web::answer::{Answer, Ask, HttpError};
use crate::web::query::{link, Query};

/// Number of queues on a page.
const PAGE: usize = 50;

/// Maximum number of troubles that are named for a queue or a family.
const TROUBLES: usize = 3;

/// The age from which an overdue message is highlighted.
const LATE: Millis = 60_000;

/// Shows all queues.
pub fn all(ask: &Ask) -> Result<Answer, HttpError> {
    let sums = totals(ask, &ask.site.live().board);
    let content = html! {
        h1 { "Queues" }
        section #totals data-live { (sums) }
        @if !ask.is_limited() { (history::charts(ask, None)) }
        (list(ask, None, "./"))
    };
    Ok(layout(ask, "queues", &Trail::new(), content))
}

/// Returns the sums over all queues that the visitor may see.
fn totals(ask: &Ask, board: &Board) -> Markup {
    let mut sum = Queue::default();
    let mut rates: Option<Rates> = None;
    let mut queues = 0;
    for entry in ask.entries(board) {
        queues += 1;
        sum.add(&entry.queue);
        if let Some(more) = entry.rates() {
            rates = Some(rates.unwrap_or_default().plus(&more));
        }
    }
    let overdue = sum.overdue().filter(|age| *age >= LATE).is_some();
    let later = sum.count("delayed") + sum.count("retry");
    let held = sum.count("held");
    let stuck = sum.trouble.len() as u64;
    let dead = sum.count("dead");
    let blocked = sum.count("blocked");
    let of =
        |state: &str, count: u64| (count > 0).then(|| link("messages", "state", state.as_bytes()));
    // The tile "later" is the sum of several states and links to one of them: to the failed
    // messages, if there are any.
    let after = if sum.count("retry") > 0 {
        "retry"
    } else {
        "delayed"
    };
    let running = sum.count("running");
    html! {
        div.tiles {
            (tile("queues", &compact(queues), None, ""))
            (tile("ready", &compact(sum.count("ready")), of("ready", sum.count("ready")).as_deref(), ""))
            (tile("later", &compact(later), of(after, later).as_deref(), ""))
            (tile("held", &compact(held), of("held", held).as_deref(), ""))
            (tile("blocked", &compact(blocked), of("blocked", blocked).as_deref(), if blocked > 0 { "warn" } else { "" }))
            (tile("running", &compact(running), of("running", running).as_deref(), ""))
            (tile("dead", &compact(dead), (dead > 0).then_some("errors"), if dead > 0 { "bad" } else { "" }))
            @if stuck > 0 { (tile("in trouble", &compact(stuck), None, "bad")) }
            (tile("sent", &rate(rates, |rates| rates.sent), None, ""))
            (tile("acked", &rate(rates, |rates| rates.acked), None, ""))
            (tile("failed", &rate(rates, |rates| rates.nacked + rates.timeouts), None, ""))
            (tile("oldest due", &sum.overdue().map_or("-".to_owned(), span), None, if overdue { "bad" } else { "" }))
        }
    }
}

fn tile(words: &str, figure: &str, address: Option<&str>, kind: &str) -> Markup {
    html! {
        @if let Some(address) = address {
            a class={ "tile " (kind) } href=(address) { b { (figure) } span { (words) } }
        } @else {
            div class={ "tile " (kind) } { b { (figure) } span { (words) } }
        }
    }
}

/// Shows the queues of a family.
pub fn family(ask: &Ask) -> Result<Answer, HttpError> {
    let name = ask.query.get("family").unwrap_or_default();
    let shown = printable(&family::shown(name));
    let target = of_target(&Target::Family(name.to_vec()));
    if !ask.sees_family(name) {
        return Err(HttpError::missing("There is no such family."));
    }
    let (sums, dead) = {
        let live = ask.site.live();
        let entry = live.board.family(name);
        let entry = entry.ok_or_else(|| HttpError::missing("There is no such family."))?;
        let sums = html! {
            section #sums data-live { (tiles(entry, &target)) }
        };
        (sums, entry.queue.count("dead"))
    };
    let act = |word: &str| target.clone().with("act", word.as_bytes());
    let content = html! {
        h1 { (shown) " " (badge("family", "")) }
        (sums)
        p.actions {
            (action(ask, "Pause all", "p", &act("pause")))
            (action(ask, "Resume all", "", &act("resume")))
            @if dead > 0 {
                (action(ask, "Redrive dead", "r", &act("redrive").with("state", b"dead")))
                a.button href=(target.link("errors")) { "Errors" }
            }
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
                @let count = queue.count(state);
                @let bad = if state == "dead" && count > 0 { " bad" } else { "" };
                a class={ "tile state-" (state) (bad) } href=(messages(state)) {
                    b { (compact(count)) }
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

/// The columns of the list: their words, and the order that their heading asks for.
const COLUMNS: [(&str, Option<Sort>); 10] = [
    ("ready", Some(Sort::Load)),
    ("later", None),
    ("held", None),
    ("blocked", Some(Sort::Trouble)),
    ("running", Some(Sort::Load)),
    ("dead", Some(Sort::Dead)),
    ("sent", None),
    ("acked", None),
    ("failed", None),
    ("oldest due", Some(Sort::Oldest)),
];

fn list(ask: &Ask, inside: Option<&[u8]>, here: &str) -> Markup {
    let query = &ask.query;
    let sought = String::from_utf8_lossy(query.get("q").unwrap_or_default()).to_lowercase();
    let sort = Sort::of(query.text("sort")).unwrap_or_default();
    let live = ask.site.live();
    let board = &live.board;
    let mut lines = rows(board, inside, sort);
    lines.retain(|row| match row.family {
        Some(family) => ask.sees_family(family),
        None => ask.sees(row.name()),
    });
    let families = lines.iter().filter(|row| row.family.is_some()).count();
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
    let span = query.get("span").unwrap_or_default();
    let base = || {
        let base = Query::default().with("span", span);
        inside.map_or(base.clone(), |family| base.with("family", family))
    };
    let here_page = if inside.is_some() { "family" } else { "./" };
    let sought_bytes = query.get("q").unwrap_or_default();
    let by = |sort: Sort| {
        let fields = base()
            .with("q", sought_bytes)
            .with("sort", sort.word().as_bytes());
        fields.link(here_page)
    };
    let heading = |words: &str, of: Option<Sort>| {
        html! {
            @match of {
                Some(of) if of != sort => a href=(by(of)) { (words) },
                Some(_) => b { (words) },
                None => (words),
            }
        }
    };
    let found = lines.len();
    let count = match families {
        0 => plural(all as u64, "queue"),
        1 => format!("{} and 1 family", plural((all - 1) as u64, "queue")),
        n => format!("{} and {n} families", plural((all - n) as u64, "queue")),
    };
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
                            th { (heading("queue", Some(Sort::Name))) }
                            @for (words, of) in COLUMNS { th.n { (heading(words, of)) } }
                            th.wide { "waiting" } th.wide { "overdue" }
                        }
                    }
                    tbody { @for (i, row) in shown.iter().enumerate() { (line(i, row)) } }
                }
            }
        }
    };
    drop(live);
    ask.site.look_at(seen);
    let page_link = |page: usize| {
        let page = page.to_string();
        let fields = base()
            .with("q", sought_bytes)
            .with("sort", sort.word().as_bytes());
        fields.with("page", page.as_bytes()).link(here_page)
    };
    html! {
        form.bar method="get" action=(here.split('?').next().unwrap_or("./")) {
            @if let Some(family) = inside.and_then(|f| std::str::from_utf8(f).ok()) {
                input type="hidden" name="family" value=(family);
            }
            @if let Ok(span) = std::str::from_utf8(span) {
                @if !span.is_empty() { input type="hidden" name="span" value=(span); }
            }
            input #search type="search" name="q" value=(sought) placeholder="part of a name" aria-label="part of a name" data-key="/";
            label { "sorted by "
                select name="sort" {
                    @for &one in Sort::value_variants() {
                        option value=(one.word()) selected[one == sort] { (one.word()) }
                    }
                }
            }
            button { "Show" }
            button form="compare" { "Compare" }
            span.note #found data-live {
                @if found < all { (found) " of " }
                (count)
            }
        }
        form #compare method="get" action="history" {}
        (table)
        nav.pages #pages data-live {
            @if pages > 1 {
                @if page > 1 { a href=(page_link(page - 1)) data-key="[" { "‹ before" } }
                span { "page " (page) " of " (pages) }
                @if page < pages { a href=(page_link(page + 1)) data-key="]" { "next ›" } }
            }
        }
    }
}

/// Returns a line. Each of its figures is a part by itself, so that only those that have
/// changed go over the wire.
fn line(i: usize, row: &Row) -> Markup {
    let entry = row.entry;
    let queue = &entry.queue;
    let rates = entry.rates();
    let address = match row.target() {
        Target::Queue(name) => link("queue", "queue", &name),
        Target::Family(name) => link("family", "family", &name),
        Target::Several(_) | Target::Matching(_) => "./".to_owned(),
    };
    let later = queue.count("delayed") + queue.count("retry");
    let dead = queue.count("dead");
    let is_late = queue.overdue().is_some_and(|age| age >= LATE);
    let figures = [
        compact(queue.count("ready")),
        compact(later),
        compact(queue.count("held")),
        compact(queue.count("blocked")),
        compact(queue.count("running")),
        compact(dead),
        rate(rates, |rates| rates.sent),
        rate(rates, |rates| rates.acked),
        rate(rates, |rates| rates.nacked + rates.timeouts),
        late(queue),
    ];
    html! {
        tr data-row {
            td.first {
                @if let (None, Ok(name)) = (row.family, std::str::from_utf8(row.name())) {
                    input type="checkbox" name="pick" form="compare" value=(name) aria-label={ "compare " (printable(row.name())) };
                    " "
                }
                a href=(address) { (name(row.name())) }
                @if row.family.is_some() { " " (badge(&plural(entry.parts as u64, "queue"), "")) }
                @if queue.paused { " " (badge("paused", "warn")) }
                @if queue.closed { " " (badge("closed", "warn")) }
                @if queue.breakers_open > 0 {
                    " " (badge(&plural(queue.breakers_open, "open breaker"), "bad"))
                }
                @for one in queue.trouble.iter().take(TROUBLES) { " " (badge(&one.sentence(), "bad")) }
            }
            @for (j, (figure, (words, _))) in figures.iter().zip(COLUMNS).enumerate() {
                @let bad = (words == "dead" && dead > 0) || (words == "oldest due" && is_late);
                @let warn = words == "blocked" && queue.count("blocked") > 0;
                td.n.bad[bad].warn[warn] data-label=(words) id={ "r" (i) "-" (j) } data-live { (figure) }
            }
            td.wide id={ "r" (i) "-w" } data-live { (small_chart(entry, Line::Waiting)) }
            td.wide id={ "r" (i) "-l" } data-live { (small_chart(entry, Line::Late)) }
        }
    }
}
