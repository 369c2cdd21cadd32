//! Reads the arguments of TOUCH.

use super::option::once;
use super::words::SOME_MS;
use super::{Parsed, Words};
use crate::op::Op;

/// Reads the arguments of TOUCH: `ms receipt [receipt ...] [NOTE text]`
pub fn touch(mut words: Words<'_>) -> Parsed<Op<'_>> {
    let ms = words.number("ms", SOME_MS)?;
    let receipts = words.receipts()?;
    let mut note = None;
    while let Some(option) = words.option() {
        match option.name() {
            what @ "NOTE" => once(&mut note, what, words.note(what)?.into())?,
            _ => return Err(option.unknown()),
        }
    }
    Ok(Op::Touch { ms, receipts, note })
}
