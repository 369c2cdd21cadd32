//! A message out of the frame of a snapshot.

use crate::core::extension::{Extension, Notes};
use crate::core::limits::{ensure, Invalid};
use crate::core::message::Message;
use crate::core::queue::parts::{Builder, Marks, Term};
use crate::core::state::{Place, Reason};
use crate::core::{Millis, NEVER};
use crate::persist::options::choices;
use crate::persist::snapshot::{extra, tag, Bases};
use crate::persist::wire::Reader;

/// Reads a message behind its tag.
pub fn message(
    reader: &mut Reader,
    tag: u8,
    bases: &mut Bases,
    builder: &mut Builder,
) -> Result<(), Invalid> {
    let has = |bit: u8| tag & bit != 0;
    let place = Place::from_u8(tag >> tag::PLACE & 7).ok_or(Invalid("an unknown place"))?;
    let seq = bases.seq.wrapping_add(reader.number()?);
    let sent_at = reader.delta(bases.sent_at)?;
    let due = reader.delta(sent_at)?;
    bases.seq = seq;
    bases.sent_at = sent_at;
    let priority = match has(tag::PRIORITY) {
        true => reader.byte()? as i8,
        false => 0,
    };
    let group = has(tag::GROUPED).then(|| reader.number()).transpose()?;
    let id = has(tag::ID).then(|| reader.bytes()).transpose()?;
    if let Some(id) = id {
        // The message keeps the length of its id in two bytes.
        crate::core::limits::name(id)?;
    }
    let (mut consumer, mut term, mut marks, mut ext) = (None, None, Marks::default(), None);
    if has(tag::EXTENSION) {
        let bits = reader.number()?;
        ensure(bits & !extra::ALL == 0, "an unknown part of a message")?;
        let (made, running) = extension(reader, bits, due, bases)?;
        let mut made = Box::new(made);
        term = running;
        if bits & extra::CONSUMER != 0 {
            consumer = Some(reader.number()?);
        }
        ending(reader, bits, due, &mut made)?;
        marks.redriving = bits & extra::REDRIVING != 0;
        marks.purged = bits & extra::PURGED != 0;
        ext = Some(made);
    }
    let mut message = Message::new(id, reader.rest(), sent_at, due);
    message.place = place;
    message.priority = priority;
    message.ext = ext;
    builder.message(seq, message, group, consumer, term, marks)
}

/// What was chosen, how often and when it was delivered, and its lease.
fn extension(
    reader: &mut Reader,
    bits: u64,
    due: Millis,
    bases: &mut Bases,
) -> Result<(Extension, Option<Term>), Invalid> {
    let has = |bit: u64| bits & bit != 0;
    let mut ext = Extension::new();
    if has(extra::CHOICES) {
        ext.rare_mut(due).choices = Some(Box::new(choices(reader)?));
    }
    let started_at = match has(extra::STARTED) {
        true => reader.delta(due)?,
        false => NEVER,
    };
    let first_started_at = match has(extra::FIRST_STARTED) {
        true => reader.delta(due)?,
        false => started_at,
    };
    ext.set_started(first_started_at, started_at, due);
    let mut term = None;
    if has(extra::RUNNING) {
        ext.receipt = reader.delta(bases.receipt)?;
        term = Some(Term {
            batch: ext.receipt.wrapping_sub(reader.number()?),
            until: reader.delta(started_at)?,
        });
        bases.receipt = ext.receipt;
    }
    if has(extra::ATTEMPT) {
        ext.attempt = small(reader)?;
    }
    Ok((ext, term))
}

/// How often it failed and how it ended.
fn ending(reader: &mut Reader, bits: u64, due: Millis, ext: &mut Extension) -> Result<(), Invalid> {
    let has = |bit: u64| bits & bit != 0;
    if has(extra::ENDED) {
        let ended_at = reader.delta(due)?;
        ensure(ended_at != NEVER, "a message ends and does not")?;
        ext.rare_mut(due).ended_at = ended_at;
    }
    if has(extra::FAILURES) {
        let rare = ext.rare_mut(due);
        rare.failures = small(reader)?;
        rare.timeouts = small(reader)?;
    }
    if has(extra::SCORE_BASE) {
        ext.rare_mut(due).score_base = reader.delta(due)?;
    }
    if has(extra::TTL_BASE) {
        ext.rare_mut(due).ttl_base = reader.delta(due)?;
    }
    if has(extra::DUE_AT) {
        ext.rare_mut(due).due_at = reader.delta(due)?;
    }
    if has(extra::NOTES) {
        ext.rare_mut(due).notes = Some(Box::new(Notes {
            error: reader.optional_bytes()?.map(Into::into),
            result: reader.optional_bytes()?.map(Into::into),
            reason: match reader.byte()? {
                0 => None,
                n => Some(Reason::from_u8(n).ok_or(Invalid("an unknown reason"))?),
            },
        }));
    }
    Ok(())
}

fn small(reader: &mut Reader) -> Result<u32, Invalid> {
    u32::try_from(reader.number()?).map_err(|_| Invalid("a count is beyond 2^32-1"))
}
