//! Reads the arguments of PAUSE.

use super::option::once;
use super::words::SOME_MS;
use super::{Parsed, Words};
use crate::op::Op;

/// Reads the arguments of PAUSE: `[GROUP g] [FOR ms]`
pub fn pause(mut words: Words<'_>) -> Parsed<Op<'_>> {
    let (mut group, mut ms) = (None, None);
    while let Some(option) = words.option() {
        match option.name() {
            what @ "GROUP" => once(&mut group, what, words.name(what)?.into())?,
            what @ "FOR" => once(&mut ms, what, words.number(what, SOME_MS)?)?,
            _ => return Err(option.unknown()),
        }
    }
    Ok(Op::Pause { group, ms })
}
