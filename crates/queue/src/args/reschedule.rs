//! Reads the arguments of RESCHEDULE.

use super::words::MS;
use super::{Parsed, Words};
use crate::op::{DueTime, Op};

/// Reads the arguments of RESCHEDULE: `id DELAY ms | AT unix-ms`
pub fn reschedule(mut words: Words<'_>) -> Parsed<Op<'_>> {
    let id = words.name("id")?.into();
    let due = match words.option() {
        Some(option) => match option.name() {
            what @ "DELAY" => DueTime::After(words.number(what, MS)?),
            what @ "AT" => DueTime::At(words.number(what, MS)?),
            _ => return Err(option.unknown()),
        },
        None => return Err("ERR DELAY or AT is missing".into()),
    };
    words.end()?;
    Ok(Op::Reschedule { id, due })
}
