//! Reads the arguments of LEN.

use super::{Parsed, Words};
use crate::message::state::State;

/// Reads the arguments of LEN: `[state]`
pub fn len(mut words: Words<'_>) -> Parsed<Option<State>> {
    let state = match words.left() {
        0 => None,
        _ => Some(words.state("state")?),
    };
    words.end()?;
    Ok(state)
}
