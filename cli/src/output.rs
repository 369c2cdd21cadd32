//! The output of a command: a stream, and whether it is to be JSON.

use std::fmt::Display;
use std::io::Write;

use crate::failure::Failure;
use crate::table::Table;

/// The output of a command.
pub struct Output<'a> {
    /// The stream.
    pub to: &'a mut dyn Write,
    /// Whether to print JSON.
    pub json: bool,
}

impl Output<'_> {
    /// Prints one line of text.
    pub fn line(&mut self, text: &str) -> Result<(), Failure> {
        Ok(writeln!(self.to, "{text}")?)
    }

    /// Prints a JSON value on one line.
    pub fn json(&mut self, value: &serde_json::Value) -> Result<(), Failure> {
        self.line(&value.to_string())
    }

    /// Prints a table, or `nothing` if it has no rows.
    pub fn table(&mut self, table: &Table, nothing: &str) -> Result<(), Failure> {
        match table.is_empty() {
            true => self.line(nothing),
            false => Ok(table.write(self.to)?),
        }
    }

    /// Says that there is more than these `count`, if there is.
    pub fn rest(&mut self, more: bool, count: impl Display) -> Result<(), Failure> {
        match more {
            true => self.line(&format!("... and more than these {count}")),
            false => Ok(()),
        }
    }
}
