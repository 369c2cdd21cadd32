//! Errors of a command, in words for a person.

use std::fmt;
use std::io;

use redis::RedisError;

use crate::text::printable;

/// Why a command failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The connection could not be made, or broke.
    Lost(String),
    /// The server refused the command, in these words.
    Refused(String),
    /// The command line makes no sense, or names something that does not exist.
    Mistake(String),
    /// Nobody reads the output any more.
    ClosedPipe,
    /// So many jobs of an import stayed where they were. They have been listed.
    Stayed(u64),
    /// The terminal or the output failed.
    Output(String),
}

/// The advice for a server without the module.
const NO_MODULE: &str = "this server has not loaded the dq module: MODULE LIST shows what it \
    has, docs/operations.md how to load it";

/// Returns whether an error means that the server does not know the module's commands.
fn is_unknown_verb(words: &str) -> bool {
    let words = words.to_ascii_lowercase();
    words.starts_with("unknown command") && words.contains("dq.info")
}

impl Failure {
    /// Returns whether the server has not loaded the module.
    pub fn is_about_module(&self) -> bool {
        matches!(self, Failure::Refused(words) if words == NO_MODULE)
    }

    /// Creates a `Mistake` with these words.
    pub fn mistake(words: impl Into<String>) -> Failure {
        Failure::Mistake(words.into())
    }

    /// Returns whether the only problem is that nobody reads the output any more.
    pub fn is_closed_pipe(&self) -> bool {
        *self == Failure::ClosedPipe
    }

    /// Returns whether the server refused because the user has no right to do it.
    pub fn is_forbidden(&self) -> bool {
        matches!(self, Failure::Refused(words) if words.starts_with("NOPERM"))
    }

    /// Returns whether there is no queue of this name: no key, or one of another type.
    pub fn is_about_key(&self) -> bool {
        matches!(self, Failure::Refused(words)
            if words.starts_with("ERR no such queue") || words.starts_with("WRONGTYPE"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Failure::Lost(words) => write!(f, "no connection: {words}"),
            Failure::Refused(words) | Failure::Mistake(words) | Failure::Output(words) => {
                f.write_str(words)
            }
            Failure::Stayed(count) => write!(f, "{count} stayed: see the table"),
            Failure::ClosedPipe => f.write_str("the output was closed"),
        }
    }
}

impl From<RedisError> for Failure {
    fn from(error: RedisError) -> Failure {
        match error.code() {
            Some("ERR") if error.detail().is_some_and(is_unknown_verb) => {
                Failure::Refused(NO_MODULE.to_owned())
            }
            Some(code) => {
                let words = format!("{code} {}", error.detail().unwrap_or(""));
                Failure::Refused(printable(words.trim_end().as_bytes()))
            }
            None if error.kind() == redis::ErrorKind::InvalidClientConfig => {
                Failure::Mistake(printable(error.to_string().as_bytes()))
            }
            None => Failure::Lost(printable(error.to_string().as_bytes())),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::ClosedPipe,
            _ => Failure::Output(error.to_string()),
        }
    }
}
