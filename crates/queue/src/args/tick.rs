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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::testing::{error, words};

    #[test]
    fn advance_and_to_are_read_only_as_the_second_of_three_words() {
        for (text, expected) in [
            ("", Tick::All),
            ("a", Tick::Keys(0..1)),
            ("a ADVANCE", Tick::Keys(0..2)),
            ("a b c", Tick::Keys(0..3)),
            ("ADVANCE b c", Tick::Keys(0..3)),
            ("a ADVANCE c d", Tick::Keys(0..4)),
            ("a advance 0", Tick::Advance(0)),
            ("TO to 5", Tick::To(5)),
        ] {
            assert_eq!(words(text, tick), Ok(expected), "{text}");
        }
        for (text, expected) in [
            (
                "a ADVANCE x",
                "ADVANCE must be an integer from 0 to 9007199254740991, not 'x'",
            ),
            (
                "a TO -1",
                "TO must be an integer from 0 to 9007199254740991, not '-1'",
            ),
        ] {
            assert_eq!(error(words(text, tick)), format!("ERR {expected}"));
        }
    }
}
