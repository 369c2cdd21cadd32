//! Positions in the lists of messages, as clients hand them back.

use std::fmt;

use crate::Millis;

/// A position in the order of a state: a time, and the number of a message or, if
/// the state is running, a receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    pub(super) time: Millis,
    pub(super) number: u64,
    /// The number of the walk page by page that it belongs to, 0 if to none.
    pub(super) pages: u64,
}

impl Cursor {
    /// The cursor below all messages whose time is `time` or later.
    pub(super) fn start_of(time: Millis) -> Cursor {
        Cursor {
            time,
            number: 0,
            pages: 0,
        }
    }

    /// The lowest cursor above this one.
    pub(super) fn next(self) -> Cursor {
        match self.number.checked_add(1) {
            Some(number) => Cursor { number, ..self },
            None => Cursor::start_of(self.time.saturating_add(1)),
        }
    }

    pub(super) fn key(self) -> (Millis, u64) {
        (self.time, self.number)
    }

    /// Parses a cursor sent by a client. "0" is the start of the listing,
    /// `Some(None)`. Returns `None` if the text is no cursor.
    pub fn parse(text: &[u8]) -> Option<Option<Cursor>> {
        if text == b"0" {
            return Some(None);
        }
        let text = std::str::from_utf8(text).ok()?;
        let (time, number) = text.split_once('-')?;
        let (number, pages) = number.split_once('-').unwrap_or((number, "0"));
        Some(Some(Cursor {
            time: time.parse().ok()?,
            number: number.parse().ok()?,
            pages: pages.parse().ok()?,
        }))
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}-{}", self.time, self.number)?;
        match self.pages {
            0 => Ok(()),
            pages => write!(f, "-{pages}"),
        }
    }
}
