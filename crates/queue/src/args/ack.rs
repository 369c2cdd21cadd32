//! Reads the arguments of ACK.

use super::apply::ApplyOptions;
use super::option::once;
use super::words::ANY;
use super::{Parsed, Words};
use crate::effect::Apply;
use crate::op::Op;

/// The arguments of ACK.
#[derive(Debug, Clone, PartialEq)]
pub struct AckRequest<'a> {
    /// The operation.
    pub op: Op<'a>,
    /// The effects that go with it, if its one receipt is current.
    pub apply: Option<Box<Apply<'a>>>,
}

/// Reads the arguments of ACK: `receipt [receipt ...] [RESULT text] [COST c] [APPLY n effect ...
/// [IF m condition ...]]`
// In place, because the result is large to copy: 118 instructions of an ACK.
#[inline(always)]
pub fn ack(mut words: Words<'_>) -> Parsed<AckRequest<'_>> {
    let receipts = words.receipts()?;
    let (mut result, mut cost) = (None, None);
    let mut apply = ApplyOptions::default();
    while let Some(option) = words.option() {
        match option.name() {
            what @ "RESULT" => once(&mut result, what, words.bytes(what)?.into())?,
            what @ "COST" => once(&mut cost, what, words.number(what, ANY)?)?,
            what @ ("APPLY" | "IF") => apply.read(what, &mut words)?,
            _ => return Err(option.unknown()),
        }
    }
    let apply = apply.finish(receipts.len())?;
    let op = match cost {
        None => Op::Ack { receipts, result },
        Some(cost) => Op::AckCost {
            receipts,
            cost,
            result,
        },
    };
    Ok(AckRequest { op, apply })
}
