//! Reads the arguments of WAIT.

use super::words::MS;
use super::{Parsed, Words};
use crate::Millis;

/// The arguments of WAIT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitRequest<'a> {
    /// The id of the message whose end is waited for.
    pub id: &'a [u8],
    /// How long to wait, in ms; 0 waits without a limit.
    pub ms: Millis,
}

/// Reads the arguments of WAIT: `id ms`
pub fn wait(mut words: Words<'_>) -> Parsed<WaitRequest<'_>> {
    let id = words.name("id")?;
    let ms = words.number("ms", MS)?;
    words.end()?;
    Ok(WaitRequest { id, ms })
}
