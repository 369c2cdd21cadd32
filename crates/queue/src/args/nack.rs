//! Reads the arguments of NACK.

use super::option::{exclude, flag, once};
use super::rare_options::park;
use super::words::{MS, SOME_MS};
use super::{Parsed, Words};
use crate::op::{NackKind, NackPause, Op, Paused};

/// Reads the arguments of NACK: `receipt [receipt ...] [DELAY ms] [ERROR text]
/// [NOTE text] [SILENT [PARK [FOR ms]] | FATAL] [PAUSE GROUP ms | PAUSE QUEUE ms]`. `random` is a random number of the caller that decides
/// the jitter of the backoffs.
pub fn nack(mut words: Words<'_>, random: u64) -> Parsed<Op<'_>> {
    let receipts = words.receipts()?;
    let (mut delay, mut error, mut note, mut pause) = (None, None, None, None);
    let (mut silent, mut fatal, mut parks, mut park_for) = (false, false, false, None);
    while let Some(option) = words.option() {
        match option.name() {
            what @ "DELAY" => once(&mut delay, what, words.number(what, MS)?)?,
            what @ "ERROR" => once(&mut error, what, words.error_text(what)?.into())?,
            what @ "NOTE" => once(&mut note, what, words.note(what)?.into())?,
            what @ "PAUSE" => once(&mut pause, what, read_pause(&mut words, what)?)?,
            what @ "SILENT" => flag(&mut silent, what)?,
            what @ "FATAL" => flag(&mut fatal, what)?,
            what @ "PARK" => flag(&mut parks, what)?,
            what @ "FOR" => once(&mut park_for, what, words.number(what, SOME_MS)?)?,
            _ => return Err(option.unknown()),
        }
    }
    exclude(("SILENT", silent), ("FATAL", fatal))?;
    exclude(("DELAY", delay.is_some()), ("FATAL", fatal))?;
    exclude(("DELAY", delay.is_some()), ("PARK", parks))?;
    if parks && !silent {
        return Err("ERR PARK needs SILENT".into());
    }
    let kind = match delay {
        _ if parks || park_for.is_some() => {
            NackKind::Park(park(parks, park_for)?.unwrap_or_default())
        }
        // A snooze of 0 ms is over at once.
        Some(ms) if silent && ms > 0 => NackKind::Snooze(ms),
        Some(ms) if !silent => NackKind::Delay(ms),
        _ if silent => NackKind::Silent,
        _ if fatal => NackKind::Fatal,
        _ => NackKind::Backoff,
    };
    Ok(Op::Nack {
        receipts,
        kind,
        error,
        random,
        note,
        pause,
    })
}

/// Reads `GROUP ms` or `QUEUE ms`.
fn read_pause(words: &mut Words<'_>, what: &str) -> Parsed<NackPause> {
    let paused = [("GROUP", Paused::Group), ("QUEUE", Paused::Queue)];
    Ok(NackPause {
        of: words.choice(what, "GROUP or QUEUE", &paused)?,
        ms: words.number(what, SOME_MS)?,
    })
}
