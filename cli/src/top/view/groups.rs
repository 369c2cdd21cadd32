//! Draws the groups of a queue: which are held, why, and until when.

use ratatui::style::Color;
use ratatui::text::Line;

use super::line::{bold, fit, row, rule, wrapped};
use crate::model::group::{Group, Wanted};
use crate::table::Side;
use crate::text::{compact, cut, printable};
use crate::time_text::{relative, Millis};
use crate::top::app::{first_shown, App};

/// Lines of the details of the selected group, with their heading.
const DETAILS: usize = 6;

/// Columns of all fields except for group and head.
const FIXED: usize = 47;

/// Returns the screen of `columns` by `rows`.
pub fn lines(app: &App, columns: usize, rows: usize) -> Vec<Line<'static>> {
    let Some(queue) = app.selected().map(|entry| &entry.queue) else {
        return vec![Line::raw(""), Line::raw(" this queue is gone")];
    };
    let wanted = app.wanted;
    let title = format!("{}: {} groups", printable(&queue.name), wanted.word());
    let mut lines = vec![rule(&title, columns)];
    let groups = match app.detail().map(|detail| &detail.groups) {
        None => {
            lines.push(Line::raw(" asking the server ..."));
            return lines;
        }
        Some(Err(why)) => {
            lines.push(Line::raw(cut(&format!(" {why}"), columns)));
            return lines;
        }
        Some(Ok(groups)) => groups,
    };
    if groups.found.is_empty() {
        let none = match wanted {
            Wanted::Held => " no group is blocked or paused",
            _ => " there are none",
        };
        lines.push(Line::raw(none));
        if groups.more {
            lines.push(Line::raw(
                " among those looked through; there are very many",
            ));
        }
        return lines;
    }
    let names = columns.saturating_sub(FIXED).max(16);
    let name = names / 2;
    let head = names - name;
    lines.push(bold(cut(
        &format!(
            " {} STATE   WAITING   RUN {} {:<9} WHY",
            fit("GROUP", name, Side::Left),
            fit("HEAD", head, Side::Left),
            "UNTIL"
        ),
        columns,
    )));
    let room = rows.saturating_sub(DETAILS + 3).max(1);
    let selected = app.selected_group().map(|group| group.name.as_slice());
    let at = groups
        .found
        .iter()
        .position(|g| Some(g.name.as_slice()) == selected)
        .unwrap_or(0);
    let first = first_shown(at, room);
    for (i, group) in groups.found.iter().enumerate().skip(first).take(room) {
        let cells = vec![(
            cells(group, queue.now, name, head),
            app.colour(group.breaker == "open", Color::Red),
        )];
        lines.push(row(cells, i == at, columns));
    }
    let shown = groups.found.len();
    lines.resize(room + 2, Line::raw(""));
    lines.push(match groups.more {
        true => Line::raw(format!(" the first {shown}; there are more")),
        false => Line::raw(""),
    });
    if let Some(group) = groups.found.get(at) {
        lines.extend(details(group, queue.now, columns));
    }
    lines.truncate(rows);
    lines
}

fn cells(group: &Group, now: Millis, name: usize, head: usize) -> String {
    let why = group.why.as_ref();
    let until = why
        .and_then(|why| why.until)
        .map(|until| relative(until, now));
    let shown = group.head.as_deref().map(printable);
    format!(
        "{} {:<7} {:>7} {:>5} {} {:<9} {}",
        fit(&printable(&group.name), name, Side::Left),
        group.state,
        compact(group.waiting),
        compact(group.running),
        fit(shown.as_deref().unwrap_or("-"), head, Side::Left),
        until.as_deref().unwrap_or("-"),
        why.map_or("-", |why| why.code.as_str()),
    )
}

/// Returns the details of the selected group.
fn details(group: &Group, now: Millis, columns: usize) -> Vec<Line<'static>> {
    let mut lines = vec![rule(&printable(&group.name), columns)];
    let mut text = match &group.head {
        Some(head) => {
            let due = group
                .head_due_at
                .map(|at| format!(", due {}", relative(at, now)));
            format!(
                "Its first message is {}{}.",
                printable(head),
                due.unwrap_or_default()
            )
        }
        None => "Nothing of it is pending.".to_owned(),
    };
    let breaker = group.breaker_words(now);
    if !breaker.is_empty() {
        text.push_str(&format!(" Its breaker is {breaker}."));
    }
    if let Some(why) = &group.why {
        text.push_str(&format!(" {}", why.why));
        if !why.by.is_empty() {
            text.push_str(&format!(" By: {}.", why.by));
        }
        match why.until {
            Some(until) => text.push_str(&format!(" That ends {}.", relative(until, now))),
            None if why.code == "next" => {}
            None => text.push_str(" That does not end by itself at a known time."),
        }
    }
    lines.extend(
        wrapped(&text, columns.saturating_sub(2))
            .into_iter()
            .map(|l| Line::raw(format!(" {l}"))),
    );
    lines
}
