//! Reads the arguments of ALTER.

use super::queue_options::read_setting;
use super::{Parsed, Words};
use crate::settings::Changes;

/// Reads the arguments of ALTER: `option value [option value ...]`
///
/// Errors also where CLOCK is given: the clock of a queue cannot be changed.
pub fn alter(mut words: Words<'_>) -> Parsed<Changes> {
    let mut changes = Changes::default();
    while let Some(option) = words.option() {
        match option.name() {
            "CLOCK" => return Err("ERR CLOCK can only be set by DQ.CREATE".into()),
            _ => read_setting(&mut changes, &option, &mut words)?,
        }
    }
    Ok(changes)
}
