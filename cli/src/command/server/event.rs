//! The events of a running server, including the ways in which it ends.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// An event of the running server.
pub enum Event {
    /// The server has written a line to its log.
    Line(String),
    /// The server has ended.
    Ended(Ended),
    /// A signal asks this program to end.
    Asked,
    /// The process that has started this program has ended.
    Orphaned,
}

/// The end of a server.
#[derive(Debug, Clone, Copy)]
pub struct Ended(pub ExitStatus);

impl Ended {
    /// Returns the code with which this program ends, as a shell would.
    pub fn code(&self) -> i32 {
        match (self.0.code(), self.0.signal()) {
            (Some(code), _) => code,
            (None, signal) => 128 + signal.unwrap_or_default(),
        }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match (self.0.code(), self.0.signal()) {
            (Some(0), _) => Ok(()),
            (Some(code), _) => write!(f, " with the code {code}"),
            (None, signal) => write!(f, " by the signal {}", signal.unwrap_or_default()),
        }
    }
}
