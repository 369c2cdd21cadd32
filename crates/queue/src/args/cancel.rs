//! Reads the arguments of CANCEL.

use super::{Parsed, Words};
use crate::op::Op;

/// Reads the arguments of CANCEL: `id [id ...]`
pub fn cancel(mut words: Words<'_>) -> Parsed<Op<'_>> {
    let mut ids = Vec::with_capacity(words.left());
    while words.left() > 0 {
        ids.push(words.name("id")?.into());
    }
    Ok(Op::Cancel { ids })
}
