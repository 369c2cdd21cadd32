//! A plain table: columns are aligned by blanks, without borders, so that both
//! people and `awk` can read it.

use std::io::{self, IsTerminal, Write};

use crate::text::{cut_middle, width};

/// The side on which a column is aligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// A name is not cut to less than this, however narrow the terminal is.
const NAME: usize = 12;

/// Rows under a heading.
pub struct Table {
    columns: Vec<(&'static str, Side)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Creates an empty table. A heading that starts with `>` aligns its column to
    /// the right.
    pub fn new(headings: &[&'static str]) -> Table {
        let columns = headings
            .iter()
            .map(|heading| match heading.strip_prefix('>') {
                Some(heading) => (heading, Side::Right),
                None => (*heading, Side::Left),
            })
            .collect();
        Table {
            columns,
            rows: Vec::new(),
        }
    }

    /// Adds a row. Its cells must be printable. Empty cells show as `-`, so that a
    /// program can count the columns.
    pub fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.columns.len());
        let filled = cells.into_iter().map(|cell| match cell.is_empty() {
            true => "-".to_owned(),
            false => cell,
        });
        self.rows.push(filled.collect());
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Cuts the cells of the first column, which are names, so that each line fits the
    /// terminal. Elsewhere, such as in a pipe, nothing is cut.
    pub fn fitted(mut self) -> Table {
        let size = match io::stdout().is_terminal() {
            true => ratatui::crossterm::terminal::size().ok(),
            false => None,
        };
        if let Some((columns, _)) = size {
            self.fit(usize::from(columns));
        }
        self
    }

    fn fit(&mut self, columns: usize) {
        let (names, all) = (self.width_of(0), self.widths().iter().sum::<usize>());
        let blanks = self.columns.len().saturating_sub(1) * 2;
        let surplus = (all + blanks).saturating_sub(columns);
        let room = names.saturating_sub(surplus).max(NAME);
        for name in self.rows.iter_mut().filter_map(|row| row.first_mut()) {
            *name = cut_middle(name, room);
        }
    }

    fn widths(&self) -> Vec<usize> {
        (0..self.columns.len()).map(|i| self.width_of(i)).collect()
    }

    fn width_of(&self, column: usize) -> usize {
        let heading = self
            .columns
            .get(column)
            .map_or(0, |(heading, _)| width(heading));
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        cells
            .map(|cell| width(cell))
            .max()
            .unwrap_or(0)
            .max(heading)
    }

    /// Writes heading and rows.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let headings: Vec<String> = self.columns.iter().map(|(h, _)| (*h).to_owned()).collect();
        let lines = || std::iter::once(&headings).chain(&self.rows);
        let widths = self.widths();
        for line in lines() {
            let mut text = String::new();
            for ((cell, (_, side)), wanted) in line.iter().zip(&self.columns).zip(&widths) {
                let blanks = " ".repeat(wanted - width(cell));
                match side {
                    Side::Left => text.push_str(&format!("{cell}{blanks}  ")),
                    Side::Right => text.push_str(&format!("{blanks}{cell}  ")),
                }
            }
            writeln!(out, "{}", text.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_to_the_width_of_the_terminal() {
        let mut table = Table::new(&["QUEUE", ">READY", "WHY"]);
        table.row(vec![
            "a-very-long-name-of-a-queue".into(),
            "7".into(),
            "because".into(),
        ]);
        table.fit(40);
        let mut out = Vec::new();
        table.write(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.lines().all(|line| width(line) <= 40), "{text}");
        assert!(text.contains('…') && text.contains("a-queue"), "{text}");
    }

    #[test]
    fn columns_are_aligned_by_width() {
        let mut table = Table::new(&["QUEUE", ">READY", "WHY"]);
        table.row(vec!["订单".into(), "7".into(), "because".into()]);
        table.row(vec!["mail".into(), "12345678".into(), String::new()]);
        let mut out = Vec::new();
        table.write(&mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "QUEUE     READY  WHY\n订单          7  because\nmail   12345678  -\n"
        );
    }
}
