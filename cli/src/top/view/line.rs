//! Formats lines of columns.

use ratatui::style::{Modifier, Style};
use ratatui::text::Line;

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

/// Formats a row of a list. The selected one has a mark, so that it is seen without
/// colours, too.
pub fn row(text: &str, selected: bool, columns: usize) -> Line<'static> {
    let mark = if selected { '>' } else { ' ' };
    let text = fit(&format!("{mark}{text}"), columns, Side::Left);
    match selected {
        true => Line::styled(text, Style::new().add_modifier(Modifier::REVERSED)),
        false => Line::raw(text),
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

/// Returns the first row of a list to show, so that the selected one is among the
/// `room` rows.
pub fn first_shown(selected: usize, room: usize) -> usize {
    (selected + 1).saturating_sub(room)
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
    fn the_selected_row_is_always_seen() {
        for selected in 0..20 {
            let first = first_shown(selected, 5);
            assert!((first..first + 5).contains(&selected));
        }
    }

    #[test]
    fn lines_break_at_blanks() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("incomprehensible", 5), ["inco…"]);
    }
}
