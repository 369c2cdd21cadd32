//! Reads the reports to parents about their children.

use super::values::name;
use crate::codec::operation::more_of_children;
use crate::codec::wire::{Reader, MOST_RESERVED};
use crate::limits::{ensure, Invalid};
use crate::message::kin::Delta;
use crate::op::{Counted, CountedOne};

/// Reads a CHILDREN.
pub fn counted<'a>(reader: &mut Reader<'a>) -> Result<Counted<'a>, Invalid> {
    let from = reader.bytes()?;
    ensure(
        !from.is_empty(),
        "the key of the queue of children must not be empty",
    )?;
    let count = reader.list()?;
    let mut of = Vec::with_capacity(count.min(MOST_RESERVED));
    for _ in 0..count {
        let id = name(reader.bytes()?)?;
        let flags = reader.byte()?;
        ensure(
            flags & !more_of_children::ALL == 0,
            "a parent is told something unknown",
        )?;
        let mut counts = [0; 5];
        for n in &mut counts {
            *n = reader.signed()?;
        }
        of.push(CountedOne {
            id,
            delta: Delta::of(counts, flags & more_of_children::DIES != 0),
            dies_later: flags & more_of_children::DIES_LATER != 0,
        });
    }
    Ok(Counted {
        from: from.into(),
        of,
    })
}
