//! Encodes the rule of a schedule.

use super::mask;
use crate::codec::bounds::{EXACT, PARTS, POSITIVE, TIME};
use crate::codec::wire::{put_bytes, put_number, put_optional_bytes, Reader};
use crate::limits::{self, ensure, Invalid};
use crate::schedule::recurrence::Recurrence;
use crate::schedule::{Extras, Limits, Missed, Overlap};
use crate::sums::Count;

/// The bit that says that [`put_extras`] has written something.
const HAS_EXTRAS: u8 = 8;

/// The treatment of fire times by a schedule.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    /// The treatment of fire times that were missed.
    pub missed: Missed,
    /// Whether it fires while its last message has not ended.
    pub overlap: Overlap,
    /// The limits, the pause and the count of skipped firings, which few schedules have.
    pub extras: Extras,
}

/// Writes when a schedule fires and how it treats fire times.
pub fn put_rule(out: &mut Vec<u8>, rule: &Recurrence, manner: Manner) {
    let Manner {
        missed,
        overlap,
        extras,
    } = manner;
    let has_extras = extras != Extras::default();
    let missed = match missed {
        Missed::Skip => 0,
        Missed::Once => 1,
        Missed::All => 2,
    };
    let more = if has_extras { HAS_EXTRAS } else { 0 };
    out.push(more | missed << 1 | u8::from(overlap == Overlap::Skip));
    match rule {
        Recurrence::Every {
            period,
            start,
            start_given,
        } => {
            out.push(u8::from(*start_given));
            put_number(out, *period);
            put_number(out, *start);
        }
        Recurrence::Cron(rule) => {
            out.push(2);
            put_bytes(out, rule.expr().as_bytes());
            put_optional_bytes(out, rule.zone().map(str::as_bytes));
        }
    }
    if has_extras {
        put_extras(out, &extras);
    }
}

/// Writes the options that few schedules have.
fn put_extras(out: &mut Vec<u8>, extras: &Extras) {
    let Limits {
        until,
        times,
        jitter,
    } = extras.limits;
    let some = |n: u64| (n > 0).then_some(n);
    let parts = [
        until,
        times,
        some(jitter),
        extras.paused,
        some(extras.skipped.get()),
    ];
    put_number(out, mask(parts.map(|part| part.is_some())));
    parts.into_iter().flatten().for_each(|n| put_number(out, n));
}

/// Reads the output of [`put_extras`].
fn extras(reader: &mut Reader) -> Result<Extras, Invalid> {
    let mask = reader.number(&PARTS)?;
    ensure((1..32).contains(&mask), "an unknown part of a schedule")?;
    let mut part = |bit: u64| match mask & 1 << bit {
        0 => Ok(None),
        _ => reader.number(&TIME).map(Some),
    };
    let (until, times, jitter) = (part(0)?, part(1)?, part(2)?);
    let (paused, skipped) = (part(3)?, part(4)?);
    ensure(
        jitter != Some(0) && skipped != Some(0),
        "a part of a schedule must not be 0",
    )?;
    let limits = Limits {
        until,
        times,
        jitter: jitter.unwrap_or(0),
    };
    limits::schedule(&limits)?;
    Ok(Extras {
        limits,
        paused,
        skipped: Count::of(skipped.unwrap_or(0)),
    })
}

/// Reads when a schedule fires and how it treats fire times.
///
/// Errors: a value is unknown or out of range, or a cron rule cannot be parsed.
pub fn rule(reader: &mut Reader) -> Result<(Recurrence, Manner), Invalid> {
    let word = reader.byte()?;
    let missed = match (word & !HAS_EXTRAS) >> 1 {
        0 => Missed::Skip,
        1 => Missed::Once,
        2 => Missed::All,
        _ => return Err(Invalid("MISSED must be 0 (SKIP), 1 (ONCE) or 2 (ALL)")),
    };
    let overlap = match word & 1 {
        0 => Overlap::Queue,
        _ => Overlap::Skip,
    };
    let rule = match reader.byte()? {
        kind @ (0 | 1) => {
            let (period, start) = (reader.number(&POSITIVE)?, reader.number(&EXACT)?);
            Recurrence::Every {
                period,
                start,
                start_given: kind == 1,
            }
        }
        2 => {
            let expr = text(Some(reader.bytes()?))?.unwrap_or_default();
            let zone = text(reader.optional_bytes()?)?;
            Recurrence::cron(expr, zone).map_err(|_| {
                Invalid("the cron expression or the time zone of a schedule is not valid")
            })?
        }
        _ => {
            return Err(Invalid(
                "the kind of a schedule must be 0 or 1 (EVERY), or 2 (CRON)",
            ))
        }
    };
    let extras = match word & HAS_EXTRAS {
        0 => Extras::default(),
        _ => extras(reader)?,
    };
    let manner = Manner {
        missed,
        overlap,
        extras,
    };
    Ok((rule, manner))
}

fn text(bytes: Option<&[u8]>) -> Result<Option<&str>, Invalid> {
    bytes
        .map(std::str::from_utf8)
        .transpose()
        .map_err(|_| Invalid("a cron expression or a time zone must be UTF-8"))
}
