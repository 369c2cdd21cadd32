//! Pictures of figures over time, of one queue or several. The script of the page shows their
//! values under the pointer, and by keyboard.

use std::fmt::Write;

use maud::{html, Markup};

use super::parts::Scale;
use crate::model::series::{Span, View};
use crate::time_text::exact;
use crate::web::answer::Ask;

/// Maximum number of lines in a picture, each of which has a colour.
pub const LINES: usize = 8;

/// Width and height of a picture, in units of its own.
const WIDE: f64 = 100.0;
const HIGH: f64 = 24.0;

/// A line: its name, and its values, of which some may be unknown.
pub struct Line {
    name: String,
    values: Vec<Option<f64>>,
}

impl Line {
    /// Creates the line of a figure.
    pub fn of<T>(name: &str, view: &View<T>, figure: impl Fn(&T) -> f64) -> Line {
        let values = view.values.iter().map(|step| step.as_ref().map(&figure));
        Line {
            name: name.to_owned(),
            values: values.collect(),
        }
    }

    /// Returns the line as a path of SVG, and the path of the area below it.
    fn paths(&self, most: f64) -> (String, String) {
        let (mut line, mut area) = (String::new(), String::new());
        let step = WIDE / self.values.len().saturating_sub(1).max(1) as f64;
        let mut open = None;
        for (i, value) in self.values.iter().enumerate() {
            let x = i as f64 * step;
            // Writing to a String cannot fail.
            let _ = match (value, open) {
                (Some(value), before) => {
                    let high = if most > 0.0 { value / most } else { 0.0 };
                    let y = HIGH - 1.0 - high * (HIGH - 2.0);
                    open = Some(x);
                    if before.is_none() {
                        // A step without neighbours is a dot.
                        let _ = write!(line, "M{x:.1},{y:.1}h.1");
                        write!(area, "M{x:.1},{HIGH}V{y:.1}")
                    } else {
                        let _ = write!(line, "L{x:.1},{y:.1}");
                        write!(area, "L{x:.1},{y:.1}")
                    }
                }
                (None, Some(last)) => {
                    open = None;
                    write!(area, "L{last:.1},{HIGH}Z")
                }
                (None, None) => Ok(()),
            };
        }
        if let Some(last) = open {
            let _ = write!(area, "L{last:.1},{HIGH}Z");
        }
        (line, area)
    }

    /// Returns the values in words, with a blank between.
    fn words(&self, scale: Scale) -> String {
        let words = self.values.iter().map(|value| value.map(scale));
        let words = words.map(|word| word.unwrap_or_else(|| "-".to_owned()));
        words.collect::<Vec<_>>().join(" ")
    }
}

/// Returns a picture of up to eight lines, in steps of a view. Its scale begins at zero.
pub fn picture<T>(words: &str, lines: &[Line], view: &View<T>, scale: Scale) -> Markup {
    let values = lines.iter().flat_map(|line| line.values.iter().flatten());
    let most = values.copied().fold(0.0, f64::max);
    let span = view.values.len() as u64 * view.step;
    let ago = |ms| format!("-{}", exact(ms));
    html! {
        figure tabindex="0" aria-label={ (words) ", at most " (scale(most)) ". Left and right show values." }
            data-first=(view.first) data-step=(view.step) {
            figcaption { (words) " " b { "max " (scale(most)) } }
            svg.chart viewBox={ "0 0 " (WIDE) " " (HIGH) } preserveAspectRatio="none" aria-hidden="true" {
                @for (i, line) in lines.iter().enumerate().take(LINES) {
                    @let (path, area) = line.paths(most);
                    @if lines.len() == 1 { path.area d=(area) {} }
                    path class={ "line line-" (i) } d=(path) data-name=(line.name) data-words=(line.words(scale)) {}
                }
                line.pointer y1="0" y2=(HIGH) {}
            }
            div.axis { span { (ago(span)) } span { (ago(span / 2)) } span { "now" } }
            output {}
        }
    }
}

/// Returns the choice of a span.
pub fn spans(ask: &Ask, span: Span) -> Markup {
    let page = match ask.path.as_str() {
        "" => "./",
        path => path,
    };
    html! {
        @for one in Span::ALL {
            @let query = ask.query.without(&["done", "back", "span"]).with("span", one.word().as_bytes());
            a href=(query.link(page)) aria-current=[(one == span).then_some("true")] { (one.words()) }
        }
    }
}

/// Returns the span of an address.
pub fn span_of(ask: &Ask) -> Span {
    Span::of(ask.query.text("span")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_gaps_where_nothing_is_known() {
        let line = Line {
            name: "a".to_owned(),
            values: vec![Some(0.0), Some(4.0), None, None, Some(2.0)],
        };
        let (path, area) = line.paths(4.0);
        assert_eq!(path, "M0.0,23.0h.1L25.0,1.0M100.0,12.0h.1");
        assert_eq!(
            area,
            "M0.0,24V23.0L25.0,1.0L25.0,24ZM100.0,24V12.0L100.0,24Z"
        );
        assert_eq!(line.words(|value| format!("{value}")), "0 4 - - 2");
    }
}
