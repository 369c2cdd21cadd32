//! The outcome of dead messages that were to go to another queue, in a snapshot.

use super::tag;
use crate::codec::bounds::{CUT, EXACT};
use crate::codec::wire::{put_bytes, put_number, put_optional_bytes, Reader};
use crate::dead_letters::{DeadLetters, Stays, Trace};
use crate::limits::{ensure, name, Invalid};
use crate::message::state::Reason;
use crate::sums::Count;

/// The most traces that are read. This is more than [`crate::dead_letters::MOST_TRACES`], which is
/// small in tests.
const MOST: usize = 1000;

/// Writes the frame.
pub fn put_dead_letters(out: &mut Vec<u8>, letters: &DeadLetters) {
    out.push(tag::DEAD_LETTERS);
    put_number(out, letters.moved.get());
    match letters.stays {
        None => out.push(0),
        Some((stays, at)) => {
            out.push(stays as u8);
            put_number(out, at);
        }
    }
    for trace in &letters.traces {
        out.push(trace.reason as u8);
        put_number(out, trace.at);
        put_bytes(out, &trace.id);
        put_bytes(out, &trace.to);
        put_optional_bytes(out, trace.new_id.as_deref());
    }
}

/// Reads the output of [`put_dead_letters`] behind the tag.
pub fn dead_letters(reader: &mut Reader) -> Result<DeadLetters, Invalid> {
    let mut letters = DeadLetters {
        moved: Count::of(reader.number(&CUT)?),
        ..DeadLetters::default()
    };
    let stays = reader.byte()?;
    if stays != 0 {
        let why = Stays::from_u8(stays).ok_or(Invalid("an unknown reason why a message stays"))?;
        let at = reader.number(&EXACT)?;
        letters.stays = Some((why, at));
    }
    while !reader.is_at_end() {
        ensure(
            letters.traces.len() < MOST,
            "more messages are remembered that have gone than may be",
        )?;
        let reason =
            Reason::from_u8(reader.byte()?).ok_or(Invalid("an unknown reason of death"))?;
        let at = reader.number(&EXACT)?;
        let id = reader.bytes()?;
        name(id)?;
        let to = reader.bytes()?.into();
        let new_id = reader.optional_bytes()?;
        new_id.map_or(Ok(()), name)?;
        letters.traces.push_back(Trace {
            id: id.into(),
            to,
            new_id: new_id.map(Into::into),
            reason,
            at,
        });
    }
    Ok(letters)
}
