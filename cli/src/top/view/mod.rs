//! Draws the state into a frame. Nothing is shown by colour alone: a selected row has
//! a mark, and a paused queue has the word. Red is what somebody should look at: dead
//! messages, old ones, an open breaker. Yellow is what was stopped.

mod groups;
mod help;
mod line;
mod queue;
mod queues;

use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph};
use ratatui::Frame;

use super::app::{App, Screen};
use crate::text::{cut, width};
use line::{beside, bold};

/// Draws everything.
pub fn draw(frame: &mut Frame, app: &App) {
    let area = frame.area();
    let (columns, rows) = (usize::from(area.width), usize::from(area.height));
    // The first line is the heading. The last two are the status and the keys.
    let body = body(rows);
    let mut lines = vec![heading(app, columns)];
    let mut content = match (app.screen, app.board.begun) {
        (_, false) => vec![Line::raw(""), Line::raw(" asking the server ...")],
        (Screen::Queues, _) => queues::lines(app, columns, body),
        (Screen::Queue, _) => queue::lines(app, columns, body),
        (Screen::Groups, _) => groups::lines(app, columns, body),
    };
    content.resize(body, Line::raw(""));
    lines.append(&mut content);
    lines.push(status(app, columns));
    lines.push(keys(app, columns));
    frame.render_widget(Paragraph::new(lines), area);
    if app.help {
        popup(frame, " keys ", &help::LINES);
    } else if let Some(question) = &app.question {
        let answers = "y: yes    any other key: no";
        popup(frame, " sure? ", &[question.words.as_str(), "", answers]);
    }
}

/// Returns how many lines there are between the heading and the status.
fn body(rows: usize) -> usize {
    rows.saturating_sub(3)
}

/// Returns how many queues are on a screen of `rows`.
pub fn room(rows: usize) -> usize {
    queues::room(body(rows))
}

fn heading(app: &App, columns: usize) -> Line<'static> {
    let left = format!("dq top  {}", app.place);
    let right = match app.board.begun {
        true => {
            let pending = app.board.entries().map(|entry| entry.queue.pending());
            let searching = if app.board.complete {
                ""
            } else {
                ", searching"
            };
            format!(
                "{}, {} pending{searching} ",
                crate::text::plural(app.board.len() as u64, "queue"),
                crate::text::compact(pending.sum())
            )
        }
        false => String::new(),
    };
    Line::styled(
        beside(&left, &right, columns),
        Style::new().add_modifier(Modifier::REVERSED),
    )
}

/// Returns the line of the last event. A lost connection comes first.
fn status(app: &App, columns: usize) -> Line<'static> {
    match (&app.lost, &app.note) {
        (Some(why), _) => {
            let line = bold(cut(&format!("! {why} - trying again"), columns));
            match app.colour(true, Color::Red) {
                Some(colour) => line.patch_style(Style::new().fg(colour)),
                None => line,
            }
        }
        (None, Some(note)) => bold(cut(&format!("* {note}"), columns)),
        (None, None) if app.typing => bold(cut(&format!("/{}_", app.filter), columns)),
        (None, None) if !app.filter.is_empty() && app.screen == Screen::Queues => {
            let text = format!("only names with {:?}: esc ends it", app.filter);
            bold(cut(&text, columns))
        }
        (None, None) => match app.warnings.first() {
            Some(warning) => {
                let more = app.warnings.len() - 1;
                let more = if more > 0 {
                    format!(" (and {more} more)")
                } else {
                    String::new()
                };
                let line = Line::raw(cut(&format!("warning{more}: {warning}"), columns));
                match app.colour(true, Color::Yellow) {
                    Some(colour) => line.patch_style(Style::new().fg(colour)),
                    None => line,
                }
            }
            None => Line::raw(""),
        },
    }
}

fn keys(app: &App, columns: usize) -> Line<'static> {
    let keys = match app.screen {
        Screen::Queues => {
            "↑↓ select  enter queue  g groups  p pause  r redrive  s sort  / filter  ? help"
        }
        Screen::Queue => "esc back  g groups  p pause/resume  r redrive  ? help  q quit",
        Screen::Groups => "↑↓ select  f which groups  p pause group  esc back  ? help  q quit",
    };
    Line::styled(cut(keys, columns), Style::new().add_modifier(Modifier::DIM))
}

/// Draws a box in the middle.
fn popup(frame: &mut Frame, title: &str, lines: &[&str]) {
    let area = frame.area();
    let widest = lines.iter().map(|line| width(line)).max().unwrap_or(0);
    let wide = (widest + 4).min(usize::from(area.width)) as u16;
    let high = (lines.len() + 2).min(usize::from(area.height)) as u16;
    let inner = usize::from(wide.saturating_sub(4));
    let place = Rect {
        x: (area.width - wide) / 2,
        y: (area.height - high) / 2,
        width: wide,
        height: high,
    };
    let lines: Vec<Line> = lines
        .iter()
        .map(|line| Line::raw(format!(" {}", cut(line, inner))))
        .collect();
    frame.render_widget(Clear, place);
    frame.render_widget(
        Paragraph::new(lines).block(Block::bordered().title(title.to_owned())),
        place,
    );
}

#[cfg(test)]
mod tests;
