//! Reads the arguments of ACK.

use super::option::once;
use super::{Parsed, Words};
use crate::op::Op;

/// Reads the arguments of ACK: `receipt [receipt ...] [RESULT text]`
pub fn ack(mut words: Words<'_>) -> Parsed<Op<'_>> {
    let receipts = words.receipts()?;
    let mut result = None;
    while let Some(option) = words.option() {
        match option.name() {
            what @ "RESULT" => once(&mut result, what, words.bytes(what)?.into())?,
            _ => return Err(option.unknown()),
        }
    }
    Ok(Op::Ack { receipts, result })
}
