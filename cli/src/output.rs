//! The output of a command: a stream, and whether it is to be JSON.

use std::io::Write;

use crate::failure::Failure;

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
}
