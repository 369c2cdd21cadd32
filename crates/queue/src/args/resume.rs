//! Reads the arguments of RESUME.

use super::option::once;
use super::{Parsed, Words};
use crate::op::Op;

/// Reads the arguments of RESUME: `[GROUP g]`
pub fn resume(mut words: Words<'_>) -> Parsed<Op<'_>> {
    let mut group = None;
    while let Some(option) = words.option() {
        match option.name() {
            what @ "GROUP" => once(&mut group, what, words.name(what)?.into())?,
            _ => return Err(option.unknown()),
        }
    }
    Ok(Op::Resume { group })
}
