//! Reads the arguments of PURGE.

use super::option::once;
use super::{Parsed, Words};
use crate::op::Op;

/// Reads the arguments of PURGE: `[s | STATE s] [GROUP g]`. The state may stand alone
/// in front, as for LEN.
pub fn purge(mut words: Words<'_>) -> Parsed<Op<'_>> {
    let (mut state, mut group) = (words.leading_state(), None);
    while let Some(option) = words.option() {
        match option.name() {
            what @ "STATE" => once(&mut state, what, words.state(what)?)?,
            what @ "GROUP" => once(&mut group, what, words.name(what)?.into())?,
            _ => return Err(option.unknown()),
        }
    }
    Ok(Op::Purge { state, group })
}
