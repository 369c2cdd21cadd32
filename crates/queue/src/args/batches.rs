//! Reads the arguments of BATCHES.

use super::option::once;
use super::words::{ANY, COUNT};
use super::{Parsed, Words};
use crate::Seq;

/// The COUNT of BATCHES if none is given.
const STEP: u64 = 10;

/// The arguments of BATCHES.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchesRequest {
    /// The number of the batch behind which to continue; 0 begins at the start.
    pub cursor: Seq,
    /// The most batches to return; at least 1.
    pub count: usize,
}

/// Reads the arguments of BATCHES: `[CURSOR c] [COUNT n]`
pub fn batches(mut words: Words<'_>) -> Parsed<BatchesRequest> {
    let (mut cursor, mut count) = (None, None);
    while let Some(option) = words.option() {
        match option.name() {
            what @ "CURSOR" => once(&mut cursor, what, words.number(what, ANY)?)?,
            what @ "COUNT" => once(&mut count, what, words.number(what, COUNT)?)?,
            _ => return Err(option.unknown()),
        }
    }
    Ok(BatchesRequest {
        cursor: cursor.unwrap_or(0),
        count: count.unwrap_or(STEP) as usize,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::testing::{error, words};

    #[test]
    fn cursor_and_count_are_read_in_any_order() {
        let request = |cursor, count| Ok(BatchesRequest { cursor, count });
        assert_eq!(words("", batches), request(0, 10));
        assert_eq!(words("count 3 CURSOR 7", batches), request(7, 3));
    }

    #[test]
    fn errors_name_the_bad_option() {
        for (text, expected) in [
            ("x", "ERR unknown option 'x'"),
            ("COUNT 1 COUNT 1", "ERR COUNT is given twice"),
            ("CURSOR", "ERR CURSOR needs a value"),
            (
                "COUNT 0",
                "ERR COUNT must be an integer from 1 to 10000, not '0'",
            ),
        ] {
            assert_eq!(error(words(text, batches).map(|_| ())), expected);
        }
    }
}
