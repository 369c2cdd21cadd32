//! Draws one queue.

use ratatui::text::Line;

use super::line::{beside, fit, rule};
use super::queues::{held, lateness};
use crate::model::history::LEGEND;
use crate::model::queue::{Queue, STATES};
use crate::model::watch::Entry;
use crate::table::Side;
use crate::text::{compact, cut, printable};
use crate::time_text::span;
use crate::top::app::App;

/// Columns of the left half, which has the states.
const LEFT: usize = 40;

/// Returns the screen of `columns` by `rows`.
pub fn lines(app: &App, columns: usize, rows: usize) -> Vec<Line<'static>> {
    let Some(entry) = app.selected() else {
        return vec![Line::raw(""), Line::raw(" this queue is gone")];
    };
    let queue = &entry.queue;
    let mut title = printable(&queue.name);
    if queue.paused {
        title.push_str(" - PAUSED: nothing is delivered");
    }
    if queue.closed {
        title.push_str(" - CLOSED: nothing is added");
    }
    let mut lines = vec![rule(&title, columns)];
    for (state, rate) in states(queue).iter().zip(rates(entry)) {
        let text = format!("{}{rate}", fit(state, LEFT, Side::Left));
        lines.push(Line::raw(cut(&text, columns)));
    }
    lines.push(rule("lateness", columns));
    let bars = entry.history.bars(columns.saturating_sub(2));
    lines.push(Line::raw(format!(" {bars}")));
    lines.push(Line::raw(cut(&format!(" {LEGEND}"), columns)));
    lines.push(Line::raw(cut(&format!(" {}", lateness(queue)), columns)));
    // Groups and consumers share the rows that are left.
    let left = rows.saturating_sub(lines.len() + 2);
    let consumers = consumers(app, columns);
    let groups = (left / 2).max(left.saturating_sub(consumers.len()));
    lines.push(rule(&format!("groups: {}", queue.groups), columns));
    lines.extend(held(app, columns, groups));
    let waiting = format!(
        "consumers: {} named, {} clients waiting in FETCH",
        queue.consumers, queue.blocked_clients
    );
    lines.push(rule(&waiting, columns));
    lines.extend(consumers);
    lines.truncate(rows);
    lines
}

/// Returns a line for each state: its count, and a bar in proportion to the largest one.
fn states(queue: &Queue) -> Vec<String> {
    let most = queue.counts.iter().copied().max().unwrap_or(0).max(1);
    let line = |state| {
        let count = queue.count(state);
        // Any count above 0 has a bar that can be seen.
        let length = (count as f64 / most as f64 * 18.0).ceil() as usize;
        format!(" {state:<9} {:>8} {}", compact(count), "#".repeat(length))
    };
    STATES.map(line).into()
}

/// Returns the rates with their totals, in as many lines as there are states.
fn rates(entry: &Entry) -> Vec<String> {
    let rates = entry.rates();
    let (queue, totals) = (&entry.queue, &entry.queue.totals);
    let count = |name: &str, count: u64| format!("{name:<12} {:>12} {:>8}", "", compact(count));
    let line = |name: &str, total: u64, rate: Option<f64>| {
        let rate = rate.map_or("-".to_owned(), |rate| format!("{rate:.1}"));
        format!("{name:<12} {rate:>10}/s {:>8}", compact(total))
    };
    vec![
        format!("{:<12} {:>12} {:>8}", "", "now", "in all"),
        line("sent", totals.sent, rates.map(|r| r.sent)),
        line("delivered", totals.delivered, rates.map(|r| r.delivered)),
        line("acked", totals.acked, rates.map(|r| r.acked)),
        line("nacked", totals.nacked, rates.map(|r| r.nacked)),
        line("timeouts", totals.timeouts, rates.map(|r| r.timeouts)),
        line("deaths", totals.deaths, rates.map(|r| r.deaths)),
        count("redelivered", totals.redelivered),
        match (queue.breakers_open, queue.batches) {
            (0, 0) => String::new(),
            (0, batches) => count("open batches", batches),
            (open, _) => count("open breaker", open),
        },
    ]
}

fn consumers(app: &App, columns: usize) -> Vec<Line<'static>> {
    let consumers = app
        .detail()
        .map(|detail| detail.consumers.as_slice())
        .unwrap_or_default();
    consumers
        .iter()
        .map(|one| {
            let seen = one.idle.map(|idle| format!("seen {} ago", span(idle)));
            let left = format!(
                " {}  running {}, acked {}, nacked {}",
                one.shown(),
                one.running,
                one.acked,
                one.nacked
            );
            Line::raw(beside(&left, &seen.unwrap_or_default(), columns))
        })
        .collect()
}
