//! Reads the arguments of commands: bytes in, operations of the queue out.
//!
//! Parsing opens no key, reads no clock and changes nothing, so an error always
//! means that nothing has happened. Each file reads the commands of one family
//! through [`Words`], a cursor over the arguments: first the positional
//! arguments, then the options, which may come in any order and any case, each
//! at most once.
//!
//! # How errors are worded
//!
//! An error is one line: `ERR `, then a sentence that names the argument at
//! fault (an option in upper case, any other argument by its name in COMMAND
//! DOCS), says what was expected, and quotes what was given instead. Bytes of
//! the client are quoted by [`quote`](crate::quote::quote), so that they can
//! neither break the line nor fill it.
//!
//! | what is wrong | the text |
//! |---|---|
//! | a word that is not an option of this command | `ERR unknown option 'x'` |
//! | an option given twice | `ERR DELAY is given twice` |
//! | an option at the end without its value | `ERR DELAY needs a value` |
//! | not an integer, or out of range | `ERR DELAY must be an integer from 0 to 9007199254740991, not 'x'` |
//! | not a finite number | `ERR SCORE must be a finite number, not 'x'` |
//! | not one of the allowed words | `ERR ONDEAD must be CONTINUE or BLOCK, not 'x'` |
//! | a name that is empty or too long | `ERR GROUP must be 1 to 1024 bytes long, not 0` |
//! | a count larger than the number of values that follow | `ERR HEADERS is followed by fewer values than it says` |
//! | two options that exclude each other | `ERR DELAY and AT exclude each other` |
//! | an option that needs another | `ERR SCORE needs GROUP` |
//! | a payload over the limit | `ERR payload must be at most 10 bytes long (dq.max-payload), not 11` |
//!
//! The layer above appends the option that was probably meant, or the syntax of
//! the command, to an error that begins with [`UNKNOWN_OPTION`] or ends with one
//! of [`WORD_IS_ABSENT`].
//!
//! Errors about a value inside a JSON payload name its path, in the words of
//! [`JsonError`](crate::json::JsonError). Errors about when a schedule fires
//! are worded by [`RecurrenceError`](crate::schedule::recurrence::RecurrenceError).

pub mod ack;
pub mod acksend;
pub mod alter;
pub mod apply;
pub mod batches;
pub mod cancel;
pub mod children;
pub mod create;
pub mod family;
pub mod fetch;
pub mod find;
pub mod get;
pub mod grouppush;
pub mod groups;
pub mod groupset;
mod integer;
pub mod len;
pub mod limit;
pub mod list;
mod message_options;
pub mod nack;
mod option;
pub mod pause;
pub mod peek;
pub mod purge;
mod queue_options;
mod rare_options;
pub mod redrive;
pub mod reschedule;
pub mod resume;
pub mod schedule;
mod scope;
pub mod send;
pub mod signal;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
pub mod tick;
pub mod touch;
pub mod update;
pub mod wait;
mod words;

pub use queue_options::default_backoff;
pub use scope::Scope;
pub use words::Words;

use std::borrow::Cow;

/// The beginning of the error for a word that is not an option.
pub const UNKNOWN_OPTION: &str = "ERR unknown option ";

/// The ends of the errors for words that are not there.
pub const WORD_IS_ABSENT: [&str; 3] = [
    " needs a value",
    " is missing",
    " is followed by fewer values than it says",
];

/// The text of an error reply, beginning with its code: `ERR DELAY needs a
/// value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgError(pub Cow<'static, str>);

impl From<&'static str> for ArgError {
    fn from(text: &'static str) -> Self {
        ArgError(Cow::Borrowed(text))
    }
}

impl From<String> for ArgError {
    fn from(text: String) -> Self {
        ArgError(Cow::Owned(text))
    }
}

/// The value that was read, or the error to reply with.
pub type Parsed<T> = Result<T, ArgError>;
