//! Why a payload or a path was refused.

use std::fmt;

/// Why nothing could be extracted. The texts hold the client's own words only
/// quoted, so each is one printable line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JsonError {
    /// The payload is no UTF-8.
    NotUtf8 {
        /// Offset of the first bad byte.
        position: usize,
    },
    /// The payload is no JSON document whose root is an object.
    BadJson {
        /// Byte offset at which it went wrong; the length of the payload
        /// where that ends too early.
        position: usize,
        /// What is wrong there.
        what: String,
    },
    /// The payload is nested deeper than [`MAX_DEPTH`](super::MAX_DEPTH).
    TooDeep {
        /// Byte offset of the bracket that opens the level too many.
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
        /// What is wrong with it.
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
