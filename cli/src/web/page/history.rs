//! The history of a queue or of all, and of several queues in one picture.

use maud::{html, Markup};

use super::layout::{layout, Trail};
use super::parts::{name, Scale};
use super::picture::{picture, span_of, spans, Line, LINES};
use crate::glob;
use crate::model::series::{Span, View};
use crate::model::step::Step;
use crate::text::{compact, cut, printable};
use crate::time_text::{exact, here, span};
use crate::web::answer::{Answer, Ask, HttpError};
use crate::web::query::{link, Query};

/// Maximum length of the sentence that says where a history comes from, in characters.
const SOURCE: usize = 200;

/// A figure: its words, its value, and how it is written.
type Figure = (String, fn(&Step) -> f64, Scale);

fn figures(of: Span) -> [Figure; 5] {
    let count: Scale = |value| compact(value as u64);
    let time: Scale = |value| span(value as u64);
    let each = exact(of.grain().step);
    [
        (format!("sent in {each}"), |step| step.sent.into(), count),
        (format!("acked in {each}"), |step| step.acked.into(), count),
        (format!("died in {each}"), |step| step.deaths.into(), count),
        ("waiting".to_owned(), |step| step.waiting.into(), count),
        ("overdue at most".to_owned(), |step| step.late.into(), time),
    ]
}

/// Returns the charts of a queue, or of all together.
pub fn charts(ask: &Ask, queue: Option<&[u8]>) -> Markup {
    let span = span_of(ask);
    let (view, source) = ask.site.history(queue, span);
    let others = queue.map(|name| link("history", "pick", name));
    html! {
        section #history data-live {
            div.bar {
                h2 { "History" }
                (spans(ask, span))
                a href=(others.as_deref().unwrap_or("history")) { "compare queues" }
                (note(&view, &source))
            }
            @if view.known().next().is_some() {
                div.charts {
                    @for (words, of, scale) in figures(span) {
                        (picture(&words, &[Line::of("", &view, of)], &view, scale))
                    }
                }
            }
        }
    }
}

/// Says how much is known, if that is not all, and where it comes from.
fn note<T>(view: &View<T>, source: &str) -> Markup {
    let known = view.known().count();
    let covered = exact(known as u64 * view.step);
    html! {
        span.note {
            @if known == 0 { "The first " (exact(view.step)) " are not over yet. " }
            @else if known < view.values.len() { (covered) " of it are known. " }
            @if !source.is_empty() { (cut(&printable(source.as_bytes()), SOURCE)) }
        }
    }
}

/// Shows several queues in one picture: those that are picked, or the busiest.
pub fn show(ask: &Ask) -> Result<Answer, HttpError> {
    let span = span_of(ask);
    let picked: Vec<&[u8]> = ask
        .query
        .all("pick")
        .filter(|name| !name.is_empty())
        .collect();
    let mut names: Vec<Vec<u8>> = Vec::new();
    for pick in &picked {
        let known = || ask.queue_names().into_iter();
        let found: Vec<Vec<u8>> = match pick.contains(&b'*') {
            true => known().filter(|name| glob::matches(pick, name)).collect(),
            false => vec![pick.to_vec()],
        };
        names.extend(found);
    }
    if picked.is_empty() {
        let live = ask.site.live();
        let busiest = live.pasts.busiest(span, here()).into_iter();
        names = busiest
            .filter(|name| ask.sees(name))
            .map(<[u8]>::to_vec)
            .collect();
    }
    let mut seen = std::collections::HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    if let Some(name) = names.iter().find(|name| !ask.sees(name)) {
        let words = format!("You may not see {}.", printable(name));
        return Err(HttpError::forbidden(&words));
    }
    let found = names.len();
    names.truncate(LINES);
    let views: Vec<(View<Step>, String)> = names
        .iter()
        .map(|name| ask.site.history(Some(name), span))
        .collect();
    let shown: Vec<String> = names.iter().map(|name| printable(name)).collect();
    let with = |names: &mut dyn Iterator<Item = &Vec<u8>>| {
        let base = Query::default().with("span", span.word().as_bytes());
        names.fold(base, |query, name| query.with("pick", name))
    };
    let content = html! {
        h1 { "History" }
        form.bar method="get" action="history" {
            input type="hidden" name="span" value=(span.word());
            @for name in picked.iter().filter_map(|name| std::str::from_utf8(name).ok()) {
                input type="hidden" name="pick" value=(name);
            }
            input type="search" name="pick" placeholder="a queue, or mails:*" aria-label="a queue, or a pattern of queues" data-key="/";
            button { "Add" }
            (spans(ask, span))
        }
        section #pictures data-live {
            p.note {
                @if picked.is_empty() { "The queues to which most was sent. " }
                @if found > LINES { "These are the first " (LINES) " of " (found) ". " }
                @if let Some((view, source)) = views.first() { (note(view, source)) }
            }
            @if names.is_empty() { p.none { "There are no queues of which something is known." } }
            ul.legend {
                @for (i, queue) in names.iter().enumerate() {
                    @let others = with(&mut names.iter().filter(|other| *other != queue));
                    li {
                        svg viewBox="0 0 20 8" aria-hidden="true" { path class={ "line line-" (i) } d="M0,4H20" {} }
                        a href=(link("queue", "queue", queue)) { (name(queue)) }
                        @if names.len() > 1 {
                            a href=(others.link("history")) aria-label={ "without " (printable(queue)) } { "×" }
                        }
                    }
                }
            }
            @if let Some((first, _)) = views.first() {
                div.pictures {
                    @for (words, of, scale) in figures(span) {
                        @let lines: Vec<Line> = shown.iter().zip(&views).map(|(name, (view, _))| Line::of(name, view, of)).collect();
                        (picture(&words, &lines, first, scale))
                    }
                }
            }
        }
    };
    Ok(layout(
        ask,
        "history",
        &Trail::from([("history".to_owned(), ask.here())]),
        content,
    ))
}
