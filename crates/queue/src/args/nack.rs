//! Reads the arguments of NACK.

use super::option::{exclude, flag, once};
use super::words::MS;
use super::{Parsed, Words};
use crate::op::{NackKind, Op};

/// Reads the arguments of NACK: `receipt [receipt ...] [DELAY ms] [ERROR text]
/// [SILENT | FATAL]`. `random` is a random number of the caller that decides
/// the jitter of the backoffs.
pub fn nack(mut words: Words<'_>, random: u64) -> Parsed<Op<'_>> {
    let receipts = words.receipts()?;
    let (mut delay, mut error) = (None, None);
    let (mut silent, mut fatal) = (false, false);
    while let Some(option) = words.option() {
        match option.name() {
            what @ "DELAY" => once(&mut delay, what, words.number(what, MS)?)?,
            what @ "ERROR" => once(&mut error, what, words.bytes(what)?.into())?,
            what @ "SILENT" => flag(&mut silent, what)?,
            what @ "FATAL" => flag(&mut fatal, what)?,
            _ => return Err(option.unknown()),
        }
    }
    exclude(("SILENT", silent), ("FATAL", fatal))?;
    exclude(("DELAY", delay.is_some()), ("SILENT", silent))?;
    exclude(("DELAY", delay.is_some()), ("FATAL", fatal))?;
    let kind = match delay {
        Some(ms) => NackKind::Delay(ms),
        None if silent => NackKind::Silent,
        None if fatal => NackKind::Fatal,
        None => NackKind::Backoff,
    };
    Ok(Op::Nack {
        receipts,
        kind,
        error,
        random,
    })
}
