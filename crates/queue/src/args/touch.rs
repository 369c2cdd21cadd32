//! Reads the arguments of TOUCH.

use super::words::SOME_MS;
use super::{Parsed, Words};
use crate::op::Op;

/// Reads the arguments of TOUCH: `ms receipt [receipt ...]`
pub fn touch(mut words: Words<'_>) -> Parsed<Op<'_>> {
    let ms = words.number("ms", SOME_MS)?;
    let receipts = words.receipts()?;
    words.end()?;
    Ok(Op::Touch { ms, receipts })
}
