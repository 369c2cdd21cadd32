//! Encodes due times.

use crate::codec::bounds::EXACT;
use crate::codec::wire::{put_number, Reader};
use crate::limits::Invalid;
use crate::message::due_time::DueTime;

/// Writes when a message becomes due.
pub fn put_due(out: &mut Vec<u8>, due: DueTime) {
    let (kind, ms) = match due {
        DueTime::Now => (0, 0),
        DueTime::After(ms) => (1, ms),
        DueTime::At(ms) => (2, ms),
    };
    out.push(kind);
    put_number(out, ms);
}

/// Reads when a message becomes due.
///
/// Errors: an unknown kind, or a time beyond 2^53-1.
pub fn due(reader: &mut Reader) -> Result<DueTime, Invalid> {
    Ok(match (reader.byte()?, reader.number(&EXACT)?) {
        (0, 0) => DueTime::Now,
        (1, ms) => DueTime::After(ms),
        (2, ms) => DueTime::At(ms),
        _ => {
            return Err(Invalid(
                "the kind of a due time must be 0 (now), 1 (after) or 2 (at)",
            ))
        }
    })
}
