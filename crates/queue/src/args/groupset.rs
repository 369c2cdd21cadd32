//! Reads the arguments of GROUPSET.

use super::option::once;
use super::queue_options::rate;
use super::words::{ANY, SOME};
use super::{Parsed, Words};
use crate::op::{GroupChanges, Op};

/// Reads the arguments of GROUPSET: `group [WEIGHT n] [CONCURRENCY n] [RATE n
/// PER ms]`
pub fn group_set(mut words: Words<'_>) -> Parsed<Op<'_>> {
    let group = words.name("group")?.into();
    let mut changes = GroupChanges::default();
    while let Some(option) = words.option() {
        match option.name() {
            what @ "WEIGHT" => once(&mut changes.weight, what, words.number(what, SOME)?)?,
            what @ "CONCURRENCY" => once(&mut changes.concurrency, what, words.number(what, ANY)?)?,
            what @ "RATE" => once(&mut changes.rate, what, rate(&mut words, what)?)?,
            _ => return Err(option.unknown()),
        }
    }
    Ok(Op::GroupSet { group, changes })
}
