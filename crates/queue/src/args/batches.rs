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
