//! Reads the arguments of ACK.

use super::option::once;
use super::words::ANY;
use super::{Parsed, Words};
use crate::op::Op;

/// Reads the arguments of ACK: `receipt [receipt ...] [RESULT text] [COST c]`
pub fn ack(mut words: Words<'_>) -> Parsed<Op<'_>> {
    let receipts = words.receipts()?;
    let (mut result, mut cost) = (None, None);
    while let Some(option) = words.option() {
        match option.name() {
            what @ "RESULT" => once(&mut result, what, words.bytes(what)?.into())?,
            what @ "COST" => once(&mut cost, what, words.number(what, ANY)?)?,
            _ => return Err(option.unknown()),
        }
    }
    Ok(match cost {
        None => Op::Ack { receipts, result },
        Some(cost) => Op::AckCost {
            receipts,
            cost,
            result,
        },
    })
}
