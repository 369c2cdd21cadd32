//! What several pages have: small charts, times, names, and links to actions.

use maud::{html, Markup};

use crate::model::history::{Line, Rates};
use crate::model::queue::Queue;
use crate::model::watch::Entry;
use crate::text::{compact, cut, printable};
use crate::time_text::{relative, span, stamp, Millis};
use crate::web::answer::Ask;
use crate::web::query::Query;

/// Width of a chart, in units of its own.
const WIDE: f64 = 100.0;

/// Height of a chart.
const HIGH: f64 = 24.0;

/// Number of samples that a chart shows.
const SAMPLES: usize = 60;

/// Returns a chart of a figure over the last samples. Its scale begins at zero.
pub fn chart(entry: &Entry, line: Line, what: &str) -> Markup {
    let values = entry.history.line(line);
    let values = values.get(values.len().saturating_sub(SAMPLES)..);
    let values = values.unwrap_or_default();
    let most = values.iter().copied().fold(0.0, f64::max);
    let step = WIDE / values.len().saturating_sub(1).max(1) as f64;
    let points: Vec<String> = values
        .iter()
        .enumerate()
        .map(|(i, value)| {
            let high = if most > 0.0 { value / most } else { 0.0 };
            let y = HIGH - 1.0 - high * (HIGH - 2.0);
            format!("{:.1},{y:.1}", i as f64 * step)
        })
        .collect();
    let points = points.join(" ");
    let area = format!("0,{HIGH} {points} {WIDE},{HIGH}");
    let label = format!("{what}: the last samples, at most {}", figure(line, most));
    html! {
        svg.chart viewBox={ "0 0 " (WIDE) " " (HIGH) } preserveAspectRatio="none" role="img" aria-label=(label) {
            title { (label) }
            @if values.len() > 1 {
                polygon.area points=(area) {}
                polyline.line points=(points) {}
            }
        }
    }
}

fn figure(line: Line, value: f64) -> String {
    match line {
        Line::Late => span(value as u64),
        Line::Sent | Line::Acked => format!("{value:.1}/s"),
        Line::Waiting | Line::Dead => compact(value as u64),
    }
}

/// Returns a rate per second.
pub fn rate(rates: Option<Rates>, of: fn(&Rates) -> f64) -> String {
    match rates {
        None => "-".to_owned(),
        Some(rates) if of(&rates) >= 100.0 => format!("{}/s", compact(of(&rates) as u64)),
        Some(rates) => format!("{:.1}/s", of(&rates)),
    }
}

/// Returns how late the queue is: the age of its oldest ready message.
pub fn late(queue: &Queue) -> String {
    queue.oldest_ready_age.map_or("-".to_owned(), span)
}

/// Returns a name or an id, which may be long and of any bytes, with all of it on hover.
pub fn name(bytes: &[u8]) -> Markup {
    let text = printable(bytes);
    let short = cut(&text, 60);
    html! { span.name title=(text) { (short) } }
}

/// Returns a time, relative to the queue's clock, with all of it on hover.
pub fn time(at: Option<Millis>, now: Millis) -> Markup {
    match at {
        None => html! { span.none { "-" } },
        Some(at) => html! { time title=(stamp(at)) { (relative(at, now)) } },
    }
}

/// Returns a link to the page that asks for confirmation of an action. There is none if
/// nothing can be changed.
pub fn action(ask: &Ask, words: &str, key: &str, query: &Query) -> Markup {
    html! {
        @if !ask.site.read_only {
            a.button href=(query.link("confirm")) data-key=[(!key.is_empty()).then_some(key)] { (words) }
        }
    }
}

/// Returns a small mark with a word.
pub fn badge(word: &str, kind: &str) -> Markup {
    html! { span class={ "badge " (kind) } { (word) } }
}
