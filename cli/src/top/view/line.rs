//! Formats lines of columns.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use crate::table::Side;
use crate::text::{cut, width};

/// Pads or cuts `text` to exactly `columns` columns.
pub fn fit(text: &str, columns: usize, side: Side) -> String {
    let text = cut(text, columns);
    let blanks = " ".repeat(columns.saturating_sub(width(&text)));
    match side {
        Side::Left => text + &blanks,
        Side::Right => blanks + &text,
    }
}

/// Puts one text at the left end and one at the right, if there is room for both.
pub fn beside(left: &str, right: &str, columns: usize) -> String {
    let room = columns.saturating_sub(width(right) + 1);
    match room {
        0 => fit(left, columns, Side::Left),
        _ => format!("{} {right}", fit(left, room, Side::Left)),
    }
}

/// A part of a line, and the colour that says something about it.
pub type Piece = (String, Option<Color>);

/// Formats a row of a list. The selected one has a mark, so that it is seen without
/// colours, too.
pub fn row(pieces: Vec<Piece>, selected: bool, columns: usize) -> Line<'static> {
    let mark = if selected { ">" } else { " " };
    let mut left = columns;
    let mut spans = Vec::with_capacity(pieces.len() + 1);
    for (text, colour) in std::iter::once((mark.to_owned(), None)).chain(pieces) {
        let text = cut(&text, left);
        left -= width(&text);
        let style = match colour {
            Some(colour) if !selected => Style::new().fg(colour),
            _ => Style::new(),
        };
        spans.push(Span::styled(text, style));
    }
    spans.push(Span::raw(" ".repeat(left)));
    match selected {
        true => Line::from(spans).style(Style::new().add_modifier(Modifier::REVERSED)),
        false => Line::from(spans),
    }
}

/// Formats a heading.
pub fn bold(text: String) -> Line<'static> {
    Line::styled(text, Style::new().add_modifier(Modifier::BOLD))
}

/// Formats a heading that divides the screen: `-- text ------`.
pub fn rule(text: &str, columns: usize) -> Line<'static> {
    let text = cut(&format!("── {text} "), columns);
    let rest = columns.saturating_sub(width(&text));
    bold(text + &"─".repeat(rest))
}

/// Breaks text at blanks into lines of at most `columns`.
pub fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut();
        match last {
            Some(line) if line.is_empty() => line.push_str(&cut(word, columns)),
            Some(line) if width(line) + 1 + width(word) <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(cut(word, columns)),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fitted_lines_have_the_given_width() {
        assert_eq!(fit("ab", 4, Side::Right), "  ab");
        assert_eq!(fit("订单订单", 5, Side::Left), "订单…");
        assert_eq!(beside("left", "right", 12), "left   right");
        assert_eq!(beside("a long left", "right", 12), "a lon… right");
        assert_eq!(beside("left", "right", 4), "left");
    }

    #[test]
    fn a_row_is_as_wide_as_the_screen() {
        let pieces = || {
            vec![
                ("orders ".to_owned(), None),
                ("7".to_owned(), Some(Color::Red)),
            ]
        };
        for columns in [0, 1, 5, 8, 9, 20] {
            for selected in [false, true] {
                assert_eq!(row(pieces(), selected, columns).width(), columns);
            }
        }
    }

    #[test]
    fn lines_break_at_blanks() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("incomprehensible", 5), ["inco…"]);
    }
}
