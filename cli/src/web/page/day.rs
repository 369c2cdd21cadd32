//! Charts of the last day.

use maud::{html, Markup};

use super::parts::{plot, Scale};
use crate::model::day::{Step, KEPT, STEP};
use crate::text::{compact, cut, printable};
use crate::time_text::span;
use crate::web::answer::Ask;

/// Returns the charts of the last day of a queue, or of all. There are none before there are
/// two steps.
pub fn charts(ask: &Ask, queue: Option<&[u8]>) -> Markup {
    let (day, source) = ask.site.day(queue);
    let Some(day) = day.filter(|day| day.steps().len() > 1) else {
        return html! {
            @if !source.is_empty() { p.note { "The last day: " (cut(&printable(source.as_bytes()), 200)) } }
        };
    };
    let values = |of: fn(&Step) -> u32| -> Vec<f64> {
        let known = day.steps().map(|step| f64::from(of(step)));
        // The right end of the chart is now, and its left end is a day ago.
        let missing = KEPT.saturating_sub(day.steps().len());
        std::iter::repeat_n(f64::NAN, missing)
            .chain(known)
            .collect()
    };
    let count = |value: f64| compact(value as u64);
    let time = |value: f64| span(value as u64);
    let figures: [(&str, Vec<f64>, Scale); 5] = [
        ("sent in 5 minutes", values(|step| step.sent), count),
        ("acked in 5 minutes", values(|step| step.acked), count),
        ("died in 5 minutes", values(|step| step.deaths), count),
        ("waiting", values(|step| step.waiting), count),
        ("overdue at most", values(|step| step.late), time),
    ];
    let covered = span(day.steps().len() as u64 * STEP);
    html! {
        section {
            h2 { "The last day " span.note {
                "(" (covered) " of it are known"
                @if !source.is_empty() { ", " (cut(&printable(source.as_bytes()), 200)) }
                ")"
            } }
            div.charts {
                @for (words, values, scale) in &figures {
                    @let most = values.iter().copied().fold(0.0, f64::max);
                    figure {
                        figcaption { (words) " " b { "max " (scale(most)) } }
                        (plot(values, words, *scale))
                        div.axis { span { "-24h" } span { "-12h" } span { "now" } }
                    }
                }
            }
        }
    }
}
