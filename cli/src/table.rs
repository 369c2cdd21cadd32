//! A plain table: columns are aligned by blanks, without borders, so that both
//! people and `awk` can read it.

use std::io::{self, Write};

use crate::text::width;

/// The side on which a column is aligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

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

    /// Writes heading and rows.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let headings: Vec<String> = self.columns.iter().map(|(h, _)| (*h).to_owned()).collect();
        let lines = || std::iter::once(&headings).chain(&self.rows);
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|i| {
                lines()
                    .filter_map(|line| line.get(i))
                    .map(|cell| width(cell))
                    .max()
            })
            .map(|widest| widest.unwrap_or(0))
            .collect();
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
