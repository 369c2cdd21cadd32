//! Reads the arguments of GET and EXPLAIN.

use super::{Parsed, Words};

/// Reads the arguments of GET and EXPLAIN: `id`
pub fn message(mut words: Words<'_>) -> Parsed<&[u8]> {
    let id = words.name("id")?;
    words.end()?;
    Ok(id)
}
