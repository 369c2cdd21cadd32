//! Reads the arguments of PEEK.

use super::option::once;
use super::words::COUNT;
use super::{Parsed, Words};

/// Reads the arguments of PEEK: `[COUNT n]`. Returns 1 if no count is given.
pub fn peek(mut words: Words<'_>) -> Parsed<usize> {
    let mut count = None;
    while let Some(option) = words.option() {
        match option.name() {
            what @ "COUNT" => once(&mut count, what, words.number(what, COUNT)?)?,
            _ => return Err(option.unknown()),
        }
    }
    Ok(count.unwrap_or(1) as usize)
}
