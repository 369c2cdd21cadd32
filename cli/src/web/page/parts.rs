//! The parts that several pages have: small charts, times, names, and links to actions.

use maud::{html, Markup};

use crate::model::history::{Line, Rates};
use crate::model::progress;
use crate::model::queue::Queue;
use crate::model::record::Record;
use crate::model::watch::Entry;
use crate::text::{compact, cut, printable};
use crate::time_text::{relative, span, stamp, Millis};
use crate::web::answer::Ask;
use crate::web::query::Query;

/// Number of characters from which on a name is broken anywhere.
const WORD: usize = 20;

/// Width of a chart, in units of its own.
const WIDE: f64 = 100.0;

/// Height of a chart.
const HIGH: f64 = 24.0;

/// Number of samples that a chart shows.
const SAMPLES: usize = 60;

/// Number of samples after which the small charts of a list are drawn anew. So they seldom go
/// over the wire.
const SLOW: usize = 10;

/// Returns a chart of a figure over the last samples. Its scale begins at zero.
pub fn chart(entry: &Entry, line: Line, what: &str) -> Markup {
    let values = entry.history.line(line);
    let values = values.get(values.len().saturating_sub(SAMPLES)..);
    plot(values.unwrap_or_default(), what, scale(line))
}

/// Returns a small chart of every second one of the last samples.
pub fn small_chart(entry: &Entry, line: Line) -> Markup {
    let values = entry.history.line(line);
    let newer = entry.history.added() as usize % SLOW;
    let end = values.len().saturating_sub(newer);
    let values = values
        .get(end.saturating_sub(SAMPLES)..end)
        .unwrap_or_default();
    let few: Vec<f64> = values.iter().copied().step_by(2).collect();
    let most = few.iter().copied().fold(0.0, f64::max);
    html! {
        svg.chart viewBox="0 0 60 24" preserveAspectRatio="none" aria-hidden="true" {
            @if few.len() > 1 && most > 0.0 {
                polyline.line points=(points(&few, most, 60.0)) {}
            }
        }
    }
}

/// Formats a value of a chart.
pub type Scale = fn(f64) -> String;

fn scale(line: Line) -> Scale {
    match line {
        Line::Late => |value| span(value as u64),
        Line::Sent | Line::Acked => |value| format!("{value:.1}/s"),
        Line::Waiting | Line::Dead => |value| compact(value as u64),
    }
}

/// Returns a chart of values. At first some may be unknown (NaN).
pub fn plot(values: &[f64], what: &str, scale: Scale) -> Markup {
    let most = values.iter().copied().fold(0.0, f64::max);
    let line = points(values, most, WIDE);
    let first = line.split(',').next().unwrap_or("0");
    let area = format!("{first},{HIGH} {line} {WIDE},{HIGH}");
    let label = format!("{what}: the last samples, at most {}", scale(most));
    html! {
        svg.chart viewBox={ "0 0 " (WIDE) " " (HIGH) } preserveAspectRatio="none" role="img" aria-label=(label) {
            title { (label) }
            @if values.len() > 1 {
                polygon.area points=(area) {}
                polyline.line points=(line) {}
            }
        }
    }
}

/// Returns the points of a line.
fn points(values: &[f64], most: f64, wide: f64) -> String {
    let step = wide / values.len().saturating_sub(1).max(1) as f64;
    let known = values
        .iter()
        .enumerate()
        .filter(|(_, value)| value.is_finite());
    let points = known.map(|(i, value)| {
        let high = if most > 0.0 { value / most } else { 0.0 };
        let y = HIGH - 1.0 - high * (HIGH - 2.0);
        format!("{:.0},{y:.0}", i as f64 * step)
    });
    points.collect::<Vec<_>>().join(" ")
}

/// Returns a rate per second.
pub fn rate(rates: Option<Rates>, of: fn(&Rates) -> f64) -> String {
    match rates {
        None => "-".to_owned(),
        Some(rates) if of(&rates) < 0.05 => "0".to_owned(),
        Some(rates) if of(&rates) >= 100.0 => format!("{}/s", compact(of(&rates) as u64)),
        Some(rates) => format!("{:.1}/s", of(&rates)),
    }
}

/// Returns how late the queue is: the age of its oldest due message.
pub fn late(queue: &Queue) -> String {
    queue.overdue().map_or("-".to_owned(), span)
}

/// Returns a name or an id, which may be long and of any bytes, with all of it on hover.
pub fn name(bytes: &[u8]) -> Markup {
    name_text(&printable(bytes))
}

/// Returns a name that is text already. Only a long one may be broken within a word, and its
/// column has room for half of a UUID in a line.
pub fn name_text(text: &str) -> Markup {
    let short = cut(text, 60);
    html! { span.name.long[short.chars().count() > WORD] title=(text) { (short) } }
}

/// Returns a time, relative to the queue's clock, with all of it on hover.
pub fn time(at: Option<Millis>, now: Millis) -> Markup {
    match at {
        None => html! { span.none { "-" } },
        Some(at) => html! { time title=(stamp(at)) { (relative(at, now)) } },
    }
}

/// Returns a link to the page that asks for confirmation of an action. There is none if
/// the visitor may not do it.
pub fn action(ask: &Ask, words: &str, key: &str, query: &Query) -> Markup {
    let query = query.clone().with("back", ask.here().as_bytes());
    html! {
        @if ask.may(query.text("act")) {
            a.button href=(query.link("confirm")) data-key=[(!key.is_empty()).then_some(key)] { (words) }
        }
    }
}

/// Returns a button for an action without a question. The action can be undone and has one
/// target.
pub fn direct(ask: &Ask, words: &str, key: &str, query: &Query) -> Markup {
    let query = query.clone().with("back", ask.here().as_bytes());
    html! {
        @if ask.may(query.text("act")) {
            button form="act" formaction=(query.link("do")) data-key=[(!key.is_empty()).then_some(key)] { (words) }
        }
    }
}

/// Returns a link to the page with a form. There is none if the visitor may not do it.
pub fn to_form(ask: &Ask, words: &str, key: &str, page: &str, query: &Query) -> Markup {
    let query = query.clone().with("back", ask.here().as_bytes());
    html! {
        @if ask.may(page) {
            a.button href=(query.link(page)) data-key=[(!key.is_empty()).then_some(key)] { (words) }
        }
    }
}

/// Returns a word with its first letter in upper case.
pub fn capital(word: &str) -> String {
    let mut letters = word.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}

/// Returns the progress of a message, if its note has it.
pub fn bar(message: &Record) -> Markup {
    let note = message.bytes("note").unwrap_or_default();
    html! {
        @if let Some(percent) = progress::percent(note) {
            progress max="100" value=(percent) title={ (percent) " %" } { (percent) " %" }
        }
    }
}

/// Returns a small mark with a word.
pub fn badge(word: &str, kind: &str) -> Markup {
    html! { span class={ "badge " (kind) } { (word) } }
}

/// The field of a page that shows rows whose name has this part.
pub fn by_name(page: &str, sought: &str) -> Markup {
    html! {
        form.bar method="get" action=(page) {
            input type="search" name="q" value=(sought) placeholder="part of a name" aria-label="part of a name" data-key="/";
            button { "Show" }
        }
    }
}
