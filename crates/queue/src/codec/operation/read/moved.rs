//! Reads the outcome of dead messages that were to go to another queue.

use crate::codec::bounds::EXACT;
use crate::codec::wire::{Reader, MOST_RESERVED};
use crate::dead_letters::{Moved, Stays};
use crate::limits::{self, Invalid};

/// Reads a MOVED. `has_stays`: whether it says why messages stay.
pub fn moved<'a>(reader: &mut Reader<'a>, has_stays: bool) -> Result<Moved<'a>, Invalid> {
    let stays = match has_stays {
        true => Some(stays(reader)?),
        false => None,
    };
    let count = reader.list()?;
    let mut gone = Vec::with_capacity(count.min(MOST_RESERVED));
    let mut seq = 0;
    for _ in 0..count {
        seq = reader.delta(seq, &EXACT)?;
        let new_id = reader.optional_bytes()?;
        if let Some(id) = new_id {
            limits::name(id)?;
        }
        gone.push((seq, new_id.map(Into::into)));
    }
    Ok(Moved { gone, stays })
}

/// Reads why a message could not go.
pub fn stays(reader: &mut Reader) -> Result<Stays, Invalid> {
    Stays::from_u8(reader.byte()?).ok_or(Invalid("an unknown reason why a message stays"))
}
