//! Encodes the rule of a schedule.

use crate::codec::wire::{put_bytes, put_number, put_optional_bytes, Reader};
use crate::limits::{self, Invalid};
use crate::schedule::recurrence::Recurrence;
use crate::schedule::{Missed, Overlap};

/// Writes when a schedule fires and how it treats missed and overlapping fire
/// times.
pub fn put_rule(out: &mut Vec<u8>, rule: &Recurrence, missed: Missed, overlap: Overlap) {
    let missed = match missed {
        Missed::Skip => 0,
        Missed::Once => 1,
        Missed::All => 2,
    };
    out.push(missed << 1 | u8::from(overlap == Overlap::Skip));
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
}

/// Reads when a schedule fires and how it treats missed and overlapping fire
/// times.
///
/// Errors: a value is unknown or out of range, or a cron rule cannot be parsed.
pub fn rule(reader: &mut Reader) -> Result<(Recurrence, Missed, Overlap), Invalid> {
    let word = reader.byte()?;
    let missed = match word >> 1 {
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
            let (period, start) = (reader.number()?, reader.number()?);
            limits::positive(period)?;
            limits::exact(start)?;
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
    Ok((rule, missed, overlap))
}

fn text(bytes: Option<&[u8]>) -> Result<Option<&str>, Invalid> {
    bytes
        .map(std::str::from_utf8)
        .transpose()
        .map_err(|_| Invalid("a cron expression or a time zone must be UTF-8"))
}
