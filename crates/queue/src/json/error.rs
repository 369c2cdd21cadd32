//! The reasons for which a payload or a path is refused.

use std::fmt;

/// The reason why nothing was extracted. Text of the client is only included quoted, so
/// each error is one printable line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JsonError {
    /// The payload is not UTF-8.
    NotUtf8 {
        /// The offset of the first invalid byte.
        position: usize,
    },
    /// The payload is not a JSON document whose root is an object.
    BadJson {
        /// The byte offset of the error; the length of the payload if that ends
        /// too early.
        position: usize,
        /// The description of the error.
        what: String,
    },
    /// The payload is nested deeper than [`MAX_DEPTH`](super::MAX_DEPTH).
    TooDeep {
        /// The byte offset of the bracket that opens the first level beyond the
        /// limit.
        position: usize,
    },
    /// The payload has no value at this path.
    Missing {
        /// The path, quoted.
        path: String,
    },
    /// The value at this path is an object, an array or null.
    WrongType {
        /// The path, quoted.
        path: String,
    },
    /// The path itself cannot be used.
    BadPath {
        /// The path, quoted.
        path: String,
        /// The description of the error.
        what: &'static str,
    },
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JsonError::NotUtf8 { position } => {
                write!(f, "payload is not UTF-8 at byte {position}")
            }
            JsonError::BadJson { position, what } => {
                write!(f, "bad JSON at byte {position}: {what}")
            }
            JsonError::TooDeep { position } => write!(
                f,
                "bad JSON at byte {position}: more than {} levels of nesting",
                super::MAX_DEPTH
            ),
            JsonError::Missing { path } => write!(f, "payload has no value at path {path}"),
            JsonError::WrongType { path } => {
                write!(f, "value at path {path} is not a string, number or boolean")
            }
            JsonError::BadPath { path, what } => write!(f, "bad path {path}: {what}"),
        }
    }
}

impl std::error::Error for JsonError {}
