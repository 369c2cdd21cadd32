//! The reasons for which the definition of a schedule is refused.

use std::fmt;

/// The error in the definition of a schedule. Text of the client is only included quoted,
/// so each error is one printable line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecurrenceError {
    /// EVERY is not 1 to 2^53-1 ms.
    Period,
    /// START is not 0 to 2^53-1 ms.
    Start,
    /// The time zone is not in the IANA database. Holds its quoted name.
    Zone(String),
    /// The cron expression has neither five nor six fields. Holds their number.
    Fields(usize),
    /// The cron expression is an unknown nickname. Holds the quoted nickname.
    Nickname(String),
    /// A field of the cron expression cannot be parsed.
    Field {
        /// The name of the field, such as `minute`.
        name: &'static str,
        /// The quoted text of the field.
        text: String,
        /// The description of the error.
        what: String,
    },
    /// The cron expression is too long, or has characters other than printable
    /// ASCII, spaces and tabs.
    Text,
}

impl fmt::Display for RecurrenceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecurrenceError::Period => f.write_str("EVERY must be 1 to 9007199254740991 ms"),
            RecurrenceError::Start => f.write_str("START must be 0 to 9007199254740991 ms"),
            RecurrenceError::Zone(zone) => write!(f, "unknown time zone {zone}"),
            RecurrenceError::Fields(count) => write!(
                f,
                "cron expression has {count} fields; it takes five, or six with seconds first"
            ),
            RecurrenceError::Nickname(name) => write!(f, "unknown cron expression {name}"),
            RecurrenceError::Field { name, text, what } => {
                write!(f, "cron field {name} {text}: {what}")
            }
            RecurrenceError::Text => write!(
                f,
                "cron expression is not plain text of at most {} bytes",
                super::cron::MAX_EXPR
            ),
        }
    }
}

impl std::error::Error for RecurrenceError {}
