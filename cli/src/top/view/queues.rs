//! Draws the list of queues and a summary of the selected one.

use ratatui::text::Line;

use super::line::{bold, first_shown, fit, row, rule};
use crate::model::queue::Queue;
use crate::moment::{relative, span};
use crate::table::Side;
use crate::text::{compact, cut, printable};
use crate::top::app::{App, Sort};

/// Lines of the summary below the list, with its heading.
const SHORT: usize = 7;

/// Columns of everything except for name and bars.
const FIXED: usize = 55;

/// Returns the screen of `columns` by `rows`.
pub fn lines(app: &App, columns: usize, rows: usize) -> Vec<Line<'static>> {
    let queues = app.queues();
    if queues.is_empty() {
        let complete = app.sample.as_ref().is_some_and(|sample| sample.complete);
        let text = if complete {
            " no queues here"
        } else {
            " searching for queues ..."
        };
        return vec![Line::raw(""), Line::raw(text)];
    }
    let name = columns.saturating_sub(FIXED).div_ceil(2).clamp(12, 40);
    let bars = columns.saturating_sub(FIXED + name);
    let mut lines = vec![bold(heading(name, bars, columns))];
    let room = rows.saturating_sub(SHORT + 1).max(1);
    let selected = app.selected().map(|queue| queue.name.as_slice());
    let at = queues
        .iter()
        .position(|queue| Some(queue.name.as_slice()) == selected);
    let first = first_shown(at.unwrap_or(0), room);
    for (i, queue) in queues.iter().enumerate().skip(first).take(room) {
        lines.push(row(&cells(app, queue, name, bars), Some(i) == at, columns));
    }
    // The summary has the same place for any number of queues.
    lines.resize(room + 1, Line::raw(""));
    if let Some(queue) = app.selected() {
        lines.extend(short(app, queue, columns));
    }
    lines.truncate(rows);
    lines
}

fn heading(name: usize, bars: usize, columns: usize) -> String {
    let name = fit("QUEUE", name, Side::Left);
    let bars = fit("LATENESS", bars, Side::Right);
    let text = format!(" {name} READY LATER BLOCKED   RUN  DEAD SENT/s  ACK/s OLDEST {bars}");
    cut(&text, columns)
}

fn cells(app: &App, queue: &Queue, name: usize, bars: usize) -> String {
    let history = app.history(queue);
    let rates = history.and_then(|history| history.rates());
    let rate = |of: Option<f64>| of.map_or("-".to_owned(), |rate| compact(rate.round() as u64));
    let mut shown = printable(&queue.name);
    if queue.paused {
        shown = format!("{} PAUSED", cut(&shown, name.saturating_sub(7)));
    }
    format!(
        "{} {:>5} {:>5} {:>7} {:>5} {:>5} {:>6} {:>6} {:>6} {}",
        fit(&shown, name, Side::Left),
        compact(queue.count("ready")),
        compact(queue.count("delayed") + queue.count("retry")),
        compact(queue.count("blocked")),
        compact(queue.count("running")),
        compact(queue.count("dead")),
        rate(rates.map(|rates| rates.sent)),
        rate(rates.map(|rates| rates.acked)),
        queue.oldest_ready_age.map_or("-".to_owned(), span),
        history
            .map(|history| history.bars(bars))
            .unwrap_or_default(),
    )
}

/// Returns the summary of the selected queue.
fn short(app: &App, queue: &Queue, columns: usize) -> Vec<Line<'static>> {
    let mut title = printable(&queue.name);
    if queue.paused {
        title.push_str(" - PAUSED");
    }
    if app.sort != Sort::Name {
        title.push_str(&format!("  (sorted by {})", app.sort.word()));
    }
    let mut lines = vec![rule(&title, columns)];
    // States that the list does not show.
    let counts = ["delayed", "retry", "finished", "cancelled"]
        .map(|state| format!("{} {state}", compact(queue.count(state))));
    let next = match queue.next_due_at {
        Some(at) => format!("; next due {}", relative(at, queue.now)),
        None => String::new(),
    };
    let people = format!(
        "{} named consumers, {} clients waiting in FETCH, {} groups",
        queue.consumers, queue.blocked_clients, queue.groups
    );
    let texts = [
        format!("{}{next}", counts.join(", ")),
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
    let oldest = known(queue.oldest_ready_age);
    format!("lateness p50 {p50}, p99 {p99}, worst {worst}; oldest ready {oldest}")
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
        return vec![Line::raw(cut(" no group is held", columns))];
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
                " held: {} ({} waiting){}",
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
