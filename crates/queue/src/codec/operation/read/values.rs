//! Reads the values of which operations consist, and checks their limits.

use crate::codec::bounds::{EXACT, FOUND, POSITIVE};
use std::borrow::Cow;

use crate::codec::wire::{Reader, MOST_RESERVED};
use crate::limits::{self, ensure, Invalid};
use crate::message::state::State;
use crate::op::Receipts;
use crate::Seq;

/// Checks a note.
pub fn note(note: &[u8]) -> Result<Cow<'_, [u8]>, Invalid> {
    limits::note(note).map(|()| note.into())
}

/// Reads this many texts.
pub fn texts<'a>(reader: &mut Reader<'a>, count: usize) -> Result<Vec<Cow<'a, [u8]>>, Invalid> {
    let mut texts = Vec::with_capacity(count.min(MOST_RESERVED));
    for _ in 0..count {
        texts.push(reader.bytes()?.into());
    }
    Ok(texts)
}

/// Reads a time, a duration, a receipt or a limit: 0 to 2^53-1.
pub fn exact(reader: &mut Reader) -> Result<u64, Invalid> {
    reader.number(&EXACT)
}

/// Reads a number from 1 to 2^53-1.
pub fn positive(reader: &mut Reader) -> Result<u64, Invalid> {
    reader.number(&POSITIVE)
}

/// Checks an id or the name of a group or consumer.
pub fn name(name: &[u8]) -> Result<Cow<'_, [u8]>, Invalid> {
    limits::name(name).map(|()| name.into())
}

/// Reads the name that takes the rest of the operation, if it has one (`is`).
pub fn name_at_end<'a>(
    reader: &mut Reader<'a>,
    is: bool,
) -> Result<Option<Cow<'a, [u8]>>, Invalid> {
    is.then(|| name(reader.rest())).transpose()
}

/// Reads receipts: the first as its difference from the time of the log entry, each
/// other one from the receipt before it.
pub fn receipts(reader: &mut Reader, time_us: u64) -> Result<Receipts, Invalid> {
    let count = reader.list()?;
    let mut receipts = Receipts::with_capacity(count.min(MOST_RESERVED));
    let mut base = time_us;
    for _ in 0..count {
        base = reader.delta(base, &EXACT)?;
        receipts.push(base);
    }
    Ok(receipts)
}

/// Reads the numbers of messages that a search has found, in its order.
pub fn seqs(reader: &mut Reader) -> Result<Vec<Seq>, Invalid> {
    let count = reader.number(&FOUND)?;
    let mut seqs = Vec::with_capacity(count.min(MOST_RESERVED as u64) as usize);
    let mut base = 0;
    for _ in 0..count {
        base = reader.delta(base, &EXACT)?;
        seqs.push(base);
    }
    Ok(seqs)
}

/// Reads the numbers of messages in runs, in order.
pub fn runs(reader: &mut Reader) -> Result<Vec<Seq>, Invalid> {
    let mut seqs = Vec::new();
    let mut end: Seq = 0;
    for _ in 0..reader.list()? {
        let (distance, more) = (reader.number(&EXACT)?, reader.number(&EXACT)?);
        ensure(
            distance > 0 && more < limits::MAX_COUNT,
            "the runs of removed messages must be in order, each at most 10000 long",
        )?;
        let first = end.saturating_add(distance);
        limits::exact(first)?;
        end = first + more;
        seqs.extend(first..=end);
        ensure(
            seqs.len() as u64 <= limits::MAX_COUNT,
            "a slice of a PURGE must remove at most 10000 messages",
        )?;
    }
    Ok(seqs)
}

/// Reads the ids of messages.
pub fn ids<'a>(reader: &mut Reader<'a>) -> Result<Vec<Cow<'a, [u8]>>, Invalid> {
    let count = reader.list()?;
    let mut ids = Vec::with_capacity(count.min(MOST_RESERVED));
    for _ in 0..count {
        ids.push(name(reader.bytes()?)?);
    }
    Ok(ids)
}

/// Reads the state of a message.
pub fn state(reader: &mut Reader) -> Result<State, Invalid> {
    let number = usize::from(reader.byte()?);
    State::ALL
        .get(number)
        .copied()
        .ok_or(Invalid("the number of a state is unknown"))
}
