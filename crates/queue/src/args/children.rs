//! Reads the arguments of CHILDREN.

use std::fmt;

use super::option::once;
use super::words::{instead, COUNT};
use super::{Parsed, Words};
use crate::Seq;

/// The COUNT of CHILDREN if none is given.
const STEP: u64 = 10;

/// The place at which the listing goes on: in the queue with this number among those that
/// have told the parent of children, behind the message with this number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cursor {
    /// The number of the queue.
    pub queue: usize,
    /// The number of the message; 0 begins at the start.
    pub behind: Seq,
}

impl Cursor {
    /// Reads the form that `fmt` writes, or 0 for the beginning.
    fn parse(word: &[u8]) -> Option<Cursor> {
        if word == b"0" {
            return Some(Cursor::default());
        }
        let (queue, behind) = std::str::from_utf8(word).ok()?.split_once('-')?;
        Some(Cursor {
            queue: queue.parse().ok()?,
            behind: behind.parse().ok().filter(|seq| *seq < Seq::MAX)?,
        })
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.queue, self.behind)
    }
}

/// The arguments of CHILDREN.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildrenRequest<'a> {
    /// The id of the parent.
    pub id: &'a [u8],
    /// The place at which the listing goes on.
    pub cursor: Cursor,
    /// The most children to return; at least 1.
    pub count: usize,
}

/// Reads the arguments of CHILDREN: `id [CURSOR c] [COUNT n]`
pub fn children(mut words: Words<'_>) -> Parsed<ChildrenRequest<'_>> {
    let id = words.name("id")?;
    let (mut cursor, mut count) = (None, None);
    while let Some(option) = words.option() {
        match option.name() {
            what @ "CURSOR" => {
                let word = words.bytes(what)?;
                let read = Cursor::parse(word)
                    .ok_or_else(|| instead(what, "0 or one that DQ.CHILDREN has answered", word))?;
                once(&mut cursor, what, read)?;
            }
            what @ "COUNT" => once(&mut count, what, words.number(what, COUNT)?)?,
            _ => return Err(option.unknown()),
        }
    }
    Ok(ChildrenRequest {
        id,
        cursor: cursor.unwrap_or_default(),
        count: count.unwrap_or(STEP) as usize,
    })
}
