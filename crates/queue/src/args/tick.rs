//! Reads the arguments of TICK.

use std::ops::Range;

use super::words::MS;
use super::{Parsed, Words};
use crate::Millis;

/// The request of TICK.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tick {
    /// Process what is due in all queues of the database.
    All,
    /// Process what is due in these queues. The range holds the indices of
    /// their keys among the arguments.
    Keys(Range<usize>),
    /// Move the manual clock of the queue at the first argument forward by this
    /// many ms.
    Advance(Millis),
    /// Move the manual clock of the queue at the first argument to this time,
    /// in Unix ms.
    To(Millis),
}

/// Reads the arguments of TICK: `[key ...]`, `key ADVANCE ms` or `key TO
/// unix-ms`
pub fn tick(mut words: Words<'_>) -> Parsed<Tick> {
    // With any other number of words, ADVANCE and TO are names of keys.
    match words.left() {
        0 => return Ok(Tick::All),
        3 => {}
        count => return Ok(Tick::Keys(words.skip(count))),
    }
    let keys = words.skip(1);
    if words.took("ADVANCE") {
        return Ok(Tick::Advance(words.number("ADVANCE", MS)?));
    }
    if words.took("TO") {
        return Ok(Tick::To(words.number("TO", MS)?));
    }
    Ok(Tick::Keys(keys.start..words.skip(2).end))
}
