//! Reads the arguments of UPDATE.

use super::{Parsed, Words};
use crate::op::Op;

/// Reads the arguments of UPDATE: `id payload`. The payload is at most `max`
/// bytes long.
pub fn update(mut words: Words<'_>, max: u64) -> Parsed<Op<'_>> {
    let id = words.name("id")?.into();
    let payload = words.payload(max)?.into();
    words.end()?;
    Ok(Op::Update { id, payload })
}
