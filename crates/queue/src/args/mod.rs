//! What the arguments of a command mean: bytes in, operations of the core out.
//!
//! Nothing in here opens a key, reads a clock or changes anything, so an error
//! always means that nothing has happened. Each file reads the verbs of one
//! family with a [`Words`] over the arguments: first those that stand in a
//! fixed place, then the options, which come in any order and any case, each
//! at most once.
//!
//! # How errors are worded
//!
//! An error is one line, `ERR ` and a sentence that starts with, or contains,
//! the word it is about: an option in upper case, another argument by its name
//! in COMMAND DOCS. What was expected comes next, then what came instead,
//! quoted by [`quote`](crate::quote::quote), so that a client's bytes
//! can neither break the line nor fill it.
//!
//! | what is wrong | the text |
//! |---|---|
//! | a word that is no option of this command | `ERR unknown option 'x'` |
//! | an option given twice | `ERR DELAY is given twice` |
//! | an option at the end without its value | `ERR DELAY needs a value` |
//! | no integer, or out of range | `ERR DELAY must be an integer from 0 to 9007199254740991, not 'x'` |
//! | no number | `ERR SCORE must be a finite number, not 'x'` |
//! | none of a few words | `ERR ONRETRY must be BLOCK or SKIP, not 'x'` |
//! | a name that is empty or too long | `ERR GROUP must be 1 to 1024 bytes long, not 0` |
//! | a count that does not fit what follows | `ERR HEADERS is followed by fewer values than it says` |
//! | two options that exclude each other | `ERR DELAY and AT exclude each other` |
//! | an option that needs another | `ERR SCORE needs GROUP` |
//! | a payload beyond the limit | `ERR payload must be at most 10 bytes long (dq.max-payload), not 11` |
//!
//! Values inside a JSON payload are named by their path, in the words of
//! [`JsonError`](crate::json::JsonError); rules of schedules in those of
//! [`RecurrenceError`](crate::recurrence::RecurrenceError).

pub mod change;
pub mod fetch;
pub mod group;
pub mod group_push;
mod integer;
pub mod look;
mod message_options;
mod option;
pub mod schedule;
pub mod send;
pub mod settings;
pub mod settle;
#[cfg(test)]
mod testing;
pub mod tick;
mod words;

pub use words::Words;

use std::borrow::Cow;

/// The text of an error reply, its code first: `ERR DELAY needs a value`.
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

/// What was read, or the error to answer.
pub type Parsed<T> = Result<T, ArgError>;
