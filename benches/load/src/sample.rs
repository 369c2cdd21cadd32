//! Measured waits.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Measured waits: when each began, in microseconds since 1970, and how many microseconds it took.
/// The latter is negative for a message that came early.
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

    /// Writes the waits to standard output, as lines of `began micros` in no particular order.
    pub fn print(self) -> io::Result<()> {
        let mut lines = String::new();
        for (began, micros) in self.0 {
            // Writing to a string never fails.
            _ = writeln!(lines, "{began} {micros}");
        }
        io::stdout().write_all(lines.as_bytes())
    }
}

/// The time since 1970.
pub fn unix_now() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}
