//! The ties that a queue has lost, in a snapshot.

use super::tag;
use crate::codec::bounds::EXACT;
use crate::codec::wire::{put_delta, put_number, Reader};
use crate::detached::Detached;
use crate::limits::{ensure, Invalid};

const EVENTS: u8 = 1;
const DEAD_TO: u8 = 2;

/// Writes the frame: which options were turned off, and the messages that were cut from their
/// parents.
pub fn put_detached(out: &mut Vec<u8>, detached: &Detached) {
    out.push(tag::DETACHED);
    let events = if detached.events { EVENTS } else { 0 };
    let dead_to = if detached.dead_to { DEAD_TO } else { 0 };
    out.push(events | dead_to);
    put_number(out, detached.children.len() as u64);
    let mut last = 0;
    for seq in &detached.children {
        put_delta(out, *seq, last);
        last = *seq;
    }
}

/// Reads the output of [`put_detached`] behind the tag.
pub fn detached(reader: &mut Reader) -> Result<Detached, Invalid> {
    let bits = reader.byte()?;
    ensure(
        bits & !(EVENTS | DEAD_TO) == 0,
        "an unknown option was turned off",
    )?;
    let mut detached = Detached {
        events: bits & EVENTS != 0,
        dead_to: bits & DEAD_TO != 0,
        ..Detached::default()
    };
    let mut last = 0;
    for _ in 0..reader.list()? {
        let seq = reader.delta(last, &EXACT)?;
        ensure(
            seq > last,
            "messages that were cut from their parents must be in order",
        )?;
        detached.children.insert(seq);
        last = seq;
    }
    reader.end()?;
    Ok(detached)
}
