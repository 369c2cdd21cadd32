//! Reads the arguments of SIGNAL.

use super::option::once;
use super::{Parsed, Words};
use crate::op::Op;

/// Reads the arguments of SIGNAL: `id [DATA text]`
pub fn signal(mut words: Words<'_>) -> Parsed<Op<'_>> {
    let id = words.name("id")?.into();
    let mut text = None;
    while let Some(option) = words.option() {
        match option.name() {
            what @ "DATA" => once(&mut text, what, words.note(what)?.into())?,
            _ => return Err(option.unknown()),
        }
    }
    Ok(Op::Signal {
        id,
        text: text.unwrap_or_default(),
    })
}
