//! Reads the arguments of LIST.

use super::option::{flag, once};
use super::words::{instead, COUNT};
use super::{Parsed, Words};
use crate::queue::inspect::cursor::Cursor;
use crate::queue::inspect::list::Listing;

/// The COUNT of LIST and GROUPS if none is given.
const STEP: u64 = 10;

/// The arguments of LIST.
#[derive(Debug, Clone, Copy)]
pub struct ListRequest<'a> {
    /// The messages to list.
    pub listing: Listing<'a>,
    /// Whether the reply holds only the ids of the messages.
    pub ids: bool,
}

/// Reads the arguments of LIST: `state [CURSOR c] [COUNT n] [GROUP g] [TYPE t]
/// [REV] [IDS]`
pub fn list(mut words: Words<'_>) -> Parsed<ListRequest<'_>> {
    let state = words.state("state")?;
    let (mut cursor, mut count, mut group, mut label) = (None, None, None, None);
    let (mut reverse, mut ids) = (false, false);
    while let Some(option) = words.option() {
        match option.name() {
            what @ "CURSOR" => once(&mut cursor, what, read_cursor(&mut words, what, "DQ.LIST")?)?,
            what @ "COUNT" => once(&mut count, what, words.number(what, COUNT)?)?,
            what @ "GROUP" => once(&mut group, what, words.name(what)?)?,
            what @ "TYPE" => once(&mut label, what, words.name(what)?)?,
            what @ "REV" => flag(&mut reverse, what)?,
            what @ "IDS" => flag(&mut ids, what)?,
            _ => return Err(option.unknown()),
        }
    }
    let listing = Listing {
        state,
        cursor: cursor.flatten(),
        reverse,
        count: count.unwrap_or(STEP) as usize,
        group,
        label,
    };
    Ok(ListRequest { listing, ids })
}

/// Reads a cursor that `verb` has answered; `None` is the start.
pub(super) fn read_cursor(words: &mut Words<'_>, what: &str, verb: &str) -> Parsed<Option<Cursor>> {
    let word = words.bytes(what)?;
    Cursor::parse(word).ok_or_else(|| {
        let expected = format_args!("0 or one that {verb} has answered");
        instead(what, expected, word)
    })
}
