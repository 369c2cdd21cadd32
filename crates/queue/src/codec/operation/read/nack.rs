//! Reads a NACK.

use std::num::NonZeroU64;

use super::values::{exact, note, positive, receipts};
use crate::codec::operation::more_of_nack;
use crate::codec::wire::Reader;
use crate::limits::{ensure, Invalid};
use crate::message::after::Park;
use crate::op::{NackKind, NackPause, Paused};
use crate::Op;

/// Reads a NACK with its parts.
pub fn nack<'a>(reader: &mut Reader<'a>, flags: u8, time_us: u64) -> Result<Op<'a>, Invalid> {
    let has = |bit: u32| flags >> bit & 1 == 1;
    let receipts = receipts(reader, time_us)?;
    let more = match has(4) {
        true => reader.byte()?,
        false => 0,
    };
    ensure(
        more & !more_of_nack::ALL == 0 && has(4) == (more != 0),
        "a NACK has an unknown part, or says falsely that it has parts",
    )?;
    let paused = match more & (more_of_nack::PAUSE_GROUP | more_of_nack::PAUSE_QUEUE) {
        0 => None,
        more_of_nack::PAUSE_GROUP => Some(Paused::Group),
        more_of_nack::PAUSE_QUEUE => Some(Paused::Queue),
        _ => return Err(Invalid("a NACK must pause groups or the queue, not both")),
    };
    let pause = match paused {
        Some(of) => Some(NackPause {
            of,
            ms: positive(reader)?,
        }),
        None => None,
    };
    let kind = match (
        flags >> 2 & 3,
        more & (more_of_nack::SNOOZE | more_of_nack::PARK),
    ) {
        (2, more_of_nack::SNOOZE) => NackKind::Snooze(positive(reader)?),
        (2, more_of_nack::PARK) => NackKind::Park(Park {
            ms: NonZeroU64::new(exact(reader)?),
        }),
        (kind, 0) => match kind {
            0 => NackKind::Backoff,
            1 => NackKind::Delay(exact(reader)?),
            2 => NackKind::Silent,
            _ => NackKind::Fatal,
        },
        _ => {
            return Err(Invalid(
                "a NACK that snoozes or parks must be of the silent kind, and do one of them",
            ))
        }
    };
    Ok(Op::Nack {
        receipts,
        kind,
        random: match has(1) {
            true => reader.fixed()?,
            false => 0,
        },
        note: match has(5) {
            true => Some(note(reader.bytes()?)?),
            false => None,
        },
        error: has(0).then(|| reader.rest().into()),
        pause,
    })
}
