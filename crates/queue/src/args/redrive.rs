//! Reads the arguments of REDRIVE.

use super::option::once;
use super::words::COUNT;
use super::{Parsed, Words};
use crate::op::{Op, Redrive};

/// Reads the arguments of REDRIVE: `ALL [COUNT n] | IDS n id [id ...]`
pub fn redrive(mut words: Words<'_>) -> Parsed<Op<'_>> {
    let which = match words.option() {
        Some(option) => match option.name() {
            "ALL" => Redrive::Oldest(most(&mut words)?),
            what @ "IDS" => {
                let count = words.count(what, 1)?;
                let ids = (0..count).map(|_| words.name(what).map(Into::into));
                Redrive::Ids(ids.collect::<Parsed<_>>()?)
            }
            _ => return Err(option.unknown()),
        },
        None => return Err("ERR ALL or IDS is missing".into()),
    };
    words.end()?;
    Ok(Op::Redrive(which))
}

/// Reads `[COUNT n]`; `u64::MAX` if it is not given.
fn most(words: &mut Words<'_>) -> Parsed<u64> {
    let mut most = None;
    while let Some(option) = words.option() {
        match option.name() {
            what @ "COUNT" => once(&mut most, what, words.number(what, COUNT)?)?,
            _ => return Err(option.unknown()),
        }
    }
    Ok(most.unwrap_or(u64::MAX))
}
