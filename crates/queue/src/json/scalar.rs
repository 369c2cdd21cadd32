//! A single value of a payload, and the types as which it can be read.

use std::borrow::Cow;

use crate::message::score::{BadScore, Score};
use crate::{Millis, MAX_EXACT};

/// A string, number or boolean of a payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scalar<'a> {
    /// A string, unescaped. It is borrowed if it has no escapes.
    Str(Cow<'a, str>),
    /// A number, exactly as it is written in the payload.
    Number(&'a str),
    /// `true` or `false`.
    Bool(bool),
}

impl Scalar<'_> {
    /// The value as text: a string without its quotes, a number as it is
    /// written, `true` or `false`.
    pub fn text(&self) -> &str {
        match self {
            Scalar::Str(text) => text,
            Scalar::Number(digits) => digits,
            Scalar::Bool(true) => "true",
            Scalar::Bool(false) => "false",
        }
    }

    /// The value as a time in Unix ms, 0 to 2^53-1. `None` unless it is a
    /// number in this range that is written without sign, fraction or exponent.
    pub fn as_ms(&self) -> Option<Millis> {
        match self {
            Scalar::Number(digits) => digits.parse().ok().filter(|ms| *ms <= MAX_EXACT),
            _ => None,
        }
    }

    /// The value as a score.
    ///
    /// Errors: it is not a number, or one that would have to be rounded.
    pub fn as_score(&self) -> Result<Score, BadScore> {
        match self {
            Scalar::Number(digits) => Score::parse(digits),
            _ => Err(BadScore::NoNumber),
        }
    }
}
