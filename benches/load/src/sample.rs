//! The waits that were measured.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Waits: when each began, in Unix microseconds, and how many microseconds it took. That is negative for a message
/// that came early.
#[derive(Default)]
pub struct Sample(Vec<(i64, i64)>);

impl Sample {
    /// Adds a wait.
    pub fn push(&mut self, began: i64, micros: i64) {
        self.0.push((began, micros));
    }

    /// Adds all waits of another sample.
    pub fn append(&mut self, mut other: Sample) {
        self.0.append(&mut other.0);
    }

    /// Prints the waits as lines of `began micros`, in no order.
    ///
    /// # Errors
    /// Standard output cannot be written to.
    pub fn print(self) -> io::Result<()> {
        let mut lines = String::new();
        for (began, micros) in self.0 {
            // Writing to a string never fails.
            _ = writeln!(lines, "{began} {micros}");
        }
        io::stdout().write_all(lines.as_bytes())
    }
}

/// Returns the time since the Unix epoch.
pub fn unix_now() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}
