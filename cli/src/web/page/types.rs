//! The run times of a queue by type.

use maud::html;

use super::layout::{layout, trail};
use super::parts::{name, time, Scale};
use super::picture::{picture, span_of, spans, Line, LINES};
use crate::model::queue::Queue;
use crate::model::record::Record;
use crate::model::run_times;
use crate::model::step::RunStep;
use crate::server::verb;
use crate::text::printable;
use crate::time_text::{here, span};
use crate::web::address::queue;
use crate::web::answer::{Answer, Ask, HttpError};
use crate::web::query::Query;

/// Shows the page.
pub fn show(ask: &Ask) -> Result<Answer, HttpError> {
    let key = queue(&ask.query)?;
    let ((types, oldest), retain, now) = ask.read(|server| {
        let info = server.call(&verb("DQ.INFO", &key))?;
        let retain = Record::of(info.clone())?.count("retain");
        let now = Queue::of(&key, info)?.now;
        Ok((run_times::fetch(server, &key)?, retain, now))
    })?;
    let count: usize = types.iter().map(|one| one.count()).sum();
    let all = types
        .iter()
        .map(|one| u128::from(one.sum()))
        .sum::<u128>()
        .max(1);
    let found = |kind: &[u8]| {
        let query = Query::default().with("queue", &key);
        query
            .with("state", b"finished")
            .with("type", kind)
            .link("messages")
    };
    let over = span_of(ask);
    let kinds = ask.site.live().pasts.runs(&key, over, here());
    let shown = |kind: &[u8]| match kind.is_empty() {
        true => "no type".to_owned(),
        false => printable(kind),
    };
    let lines = |of: fn(&RunStep) -> u32| -> Vec<Line> {
        let kinds = kinds.iter().take(LINES);
        kinds
            .map(|(kind, view)| Line::of(&shown(kind), view, |step| f64::from(of(step))))
            .collect()
    };
    let scale: Scale = |value| span(value as u64);
    let content = html! {
        h1 { "Run times of " (printable(&key)) }
        p.note {
            "From delivery to the end, of the last " (count) " finished messages"
            @if oldest.is_some() { ", since " (time(oldest, now)) }
            "."
        }
        @if types.is_empty() {
            p.none {
                "There are no records of finished messages."
                @if retain == 0 { " The queue keeps none: RETAIN is 0. Change it in its settings." }
            }
        } @else {
            section #history data-live {
                div.bar { h2 { "History" } (spans(ask, over))
                    span.note { "Of the newest 25 messages of each minute." }
                }
                @if let Some((_, view)) = kinds.first() {
                    ul.legend {
                        @for (i, (kind, _)) in kinds.iter().enumerate().take(LINES) {
                            li {
                                svg viewBox="0 0 20 8" aria-hidden="true" { path class={ "line line-" (i) } d="M0,4H20" {} }
                                (shown(kind))
                            }
                        }
                    }
                    div.pictures {
                        (picture("run time on the average", &lines(RunStep::mean), view, scale))
                        (picture("longest run time", &lines(|step| step.longest), view, scale))
                    }
                }
            }
            table {
                thead { tr {
                    th { "type" } th.n { "messages" } th.n { "median" } th.n { "95 %" } th.n { "longest" }
                    th.n { "of all time" } th.n { "repeated" }
                } }
                tbody {
                    @for one in &types {
                        tr data-row {
                            td.first { a href=(found(&one.kind)) {
                                @if one.kind.is_empty() { "no type" } @else { (name(&one.kind)) }
                            } }
                            td.n data-label="messages" { (one.count()) }
                            td.n data-label="median" { (span(one.percentile(50))) }
                            td.n data-label="95 %" { (span(one.percentile(95))) }
                            td.n data-label="longest" { (span(one.percentile(100))) }
                            td.n data-label="of all time" { (u128::from(one.sum()) * 100 / all) " %" }
                            td.n data-label="repeated" { (one.repeats) }
                        }
                    }
                }
            }
        }
    };
    let mut steps = trail(&key);
    steps.push(("run times".to_owned(), ask.here()));
    let title = format!("run times of {}", printable(&key));
    Ok(layout(ask, &title, &steps, content))
}
