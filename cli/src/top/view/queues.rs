//! Draws the list of queues and a summary of the selected one.

use ratatui::style::Color;
use ratatui::text::Line;

use super::line::{bold, fit, row, rule, Piece};
use crate::model::overview::Sort;
use crate::model::queue::Queue;
use crate::model::watch::Entry;
use crate::table::Side;
use crate::text::{compact, cut, printable};
use crate::time_text::{relative, span};
use crate::top::app::{first_shown, App};

/// Lines of the summary below the list, with its heading.
const SHORT: usize = 7;

/// Columns of all fields except for name and bars.
const FIXED: usize = 55;

/// Returns the screen of `columns` by `rows`.
pub fn lines(app: &App, columns: usize, rows: usize) -> Vec<Line<'static>> {
    let list = app.rows();
    if list.is_empty() {
        let text = match app.board.complete {
            true if !app.filter.is_empty() => " no queue with such a name",
            true => " no queues here",
            false => " searching for queues ...",
        };
        return vec![Line::raw(""), Line::raw(text)];
    }
    let name = columns.saturating_sub(FIXED).div_ceil(2).clamp(12, 40);
    let bars = columns.saturating_sub(FIXED + name);
    let mut lines = vec![bold(heading(name, bars, columns))];
    let room = room(rows);
    let at = app.index(&list);
    let first = first_shown(at.unwrap_or(0), room);
    for (i, line) in list.iter().enumerate().skip(first).take(room) {
        let cells = cells(app, line.entry, name, bars);
        lines.push(row(cells, Some(i) == at, columns));
    }
    // The position of the summary does not depend on the number of queues.
    lines.resize(room + 1, Line::raw(""));
    if let Some(entry) = app.selected() {
        lines.extend(short(app, entry, columns));
    }
    lines.truncate(rows);
    lines
}

/// Returns how many lines of the list are on a screen of `rows`.
pub fn room(rows: usize) -> usize {
    rows.saturating_sub(SHORT + 1).max(1)
}

fn heading(name: usize, bars: usize, columns: usize) -> String {
    let name = fit("QUEUE", name, Side::Left);
    let bars = fit("LATENESS", bars, Side::Right);
    let text = format!(" {name} READY LATER BLOCKED   RUN  DEAD SENT/s  ACK/s OLDEST {bars}");
    cut(&text, columns)
}

fn cells(app: &App, entry: &Entry, name: usize, bars: usize) -> Vec<Piece> {
    let queue = &entry.queue;
    let rates = entry.rates();
    let rate = |of: Option<f64>| of.map_or("-".to_owned(), |rate| compact(rate.round() as u64));
    let mut shown = printable(&queue.name);
    if queue.paused {
        shown = format!("{} PAUSED", cut(&shown, name.saturating_sub(7)));
    } else if queue.breakers_open > 0 {
        shown = format!("{} BREAKER", cut(&shown, name.saturating_sub(8)));
    } else if queue.closed {
        shown = format!("{} CLOSED", cut(&shown, name.saturating_sub(7)));
    } else if entry.parts > 1 {
        let parts = format!(" x{}", entry.parts);
        shown = cut(&shown, name.saturating_sub(parts.len())) + &parts;
    }
    let stands_out = queue.paused || queue.closed || queue.breakers_open > 0;
    let dead = queue.count("dead");
    let late = queue.overdue();
    vec![
        (
            fit(&shown, name, Side::Left),
            app.colour(stands_out, Color::Yellow),
        ),
        (
            format!(
                " {:>5} {:>5} {:>7} {:>5}",
                compact(queue.count("ready")),
                compact(queue.count("delayed") + queue.count("retry") + queue.count("held")),
                compact(queue.count("blocked")),
                compact(queue.count("running")),
            ),
            None,
        ),
        (
            format!(" {:>5}", compact(dead)),
            app.colour(dead > 0, Color::Red),
        ),
        (
            format!(
                " {:>6} {:>6}",
                rate(rates.map(|rates| rates.sent)),
                rate(rates.map(|rates| rates.acked)),
            ),
            None,
        ),
        (
            format!(" {:>6} ", late.map_or("-".to_owned(), span)),
            app.colour(late.is_some_and(|age| age >= LATE), Color::Red),
        ),
        (entry.history.bars(bars), None),
    ]
}

/// The age in ms from which the oldest ready message is highlighted.
const LATE: u64 = 60_000;

/// Returns the summary of the selected queue or family.
fn short(app: &App, entry: &Entry, columns: usize) -> Vec<Line<'static>> {
    let queue = &entry.queue;
    let mut title = printable(&queue.name);
    if entry.parts > 1 {
        title.push_str(&format!(": {} queues", entry.parts));
    }
    if queue.paused {
        title.push_str(" - PAUSED");
    }
    if queue.closed {
        title.push_str(" - CLOSED");
    }
    if app.sort != Sort::default() {
        title.push_str(&format!("  (sorted by {})", app.sort.word()));
    }
    let mut lines = vec![rule(&title, columns)];
    // States that the list does not show. The rarer ones are shown only if they have messages.
    let counts = ["delayed", "retry", "held", "finished", "cancelled"]
        .into_iter()
        .filter(|state| *state != "held" || queue.count(state) > 0)
        .map(|state| format!("{} {state}", compact(queue.count(state))));
    let next = match queue.next_due_at {
        Some(at) => format!("; next due {}", relative(at, queue.now)),
        None => String::new(),
    };
    let mut people = format!(
        "{} named consumers, {} clients waiting in FETCH, {} groups",
        queue.consumers, queue.blocked_clients, queue.groups
    );
    if queue.batches > 0 {
        people.push_str(&format!(", {} batches", queue.batches));
    }
    if queue.breakers_open > 0 {
        people.push_str(&format!(", {} breakers open", queue.breakers_open));
    }
    let texts = [
        format!("{}{next}", counts.collect::<Vec<_>>().join(", ")),
        lateness(queue),
        people,
    ];
    lines.extend(texts.map(|text| Line::raw(cut(&format!(" {text}"), columns))));
    lines.extend(held(app, columns, SHORT - 4));
    lines
}

/// Formats how late the queue delivers.
pub fn lateness(queue: &Queue) -> String {
    let known = |ms: Option<u64>| ms.map_or("-".to_owned(), span);
    let [p50, p99, worst] = queue.lateness.map(known);
    let oldest = known(queue.overdue());
    format!("lateness p50 {p50}, p99 {p99}, worst {worst}; oldest {oldest}")
}

/// Returns the first held groups and why they are held, in at most `room` lines.
pub fn held(app: &App, columns: usize, room: usize) -> Vec<Line<'static>> {
    let Some(detail) = app.detail() else {
        return Vec::new();
    };
    let groups = match &detail.groups {
        Ok(groups) => groups,
        Err(why) => return vec![Line::raw(cut(&format!(" groups: {why}"), columns))],
    };
    if groups.found.is_empty() {
        return vec![Line::raw(cut(" no group is blocked or paused", columns))];
    }
    let hidden = groups.more || groups.found.len() > room;
    let shown = if hidden { room.saturating_sub(1) } else { room };
    let mut lines: Vec<_> = groups
        .found
        .iter()
        .take(shown)
        .map(|group| {
            let why = group.why.as_ref();
            let text = format!(
                " {}: {} ({} waiting){}",
                if group.state == "paused" {
                    "paused"
                } else {
                    "held"
                },
                printable(&group.name),
                group.waiting,
                why.map(|why| format!(": {}", why.why)).unwrap_or_default()
            );
            Line::raw(cut(&text, columns))
        })
        .collect();
    if hidden {
        lines.push(Line::raw(cut(" more are held: g shows them", columns)));
    }
    lines
}
