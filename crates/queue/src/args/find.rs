//! Reads the arguments of FIND.

use super::list::read_cursor;
use super::option::{exclude, flag, once};
use super::words::{COUNT, MS};
use super::{Parsed, Words};
use crate::glob::Glob;
use crate::limits::MAX_GLOB;
use crate::message::state::State;
use crate::op::FindAct;
use crate::queue::inspect::find::Search;

/// The COUNT of FIND if none is given.
const STEP: u64 = 1000;

/// The effect of FIND on the messages that match, and its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// It replies with the messages.
    Messages,
    /// It replies with their ids.
    Ids,
    /// It changes them, and replies with their number.
    Do(FindAct),
}

/// The arguments of FIND.
#[derive(Debug, Clone, PartialEq)]
pub struct FindRequest<'a> {
    /// The messages to find.
    pub search: Search<'a>,
    /// The use that is made of the found messages.
    pub found: Found,
}

/// Reads the arguments of FIND: `state [ID glob] [TYPE t] [GROUP g] [BATCH b]
/// [PARENT key id] [HEADER field value] [ERROR glob] [PAYLOAD glob] [SINCE unix-ms] [UNTIL unix-ms] [REV]
/// [CURSOR c] [COUNT n] [IDS | DO REDRIVE | DO CANCEL | DO PURGE]`
pub fn find(mut words: Words<'_>) -> Parsed<FindRequest<'_>> {
    let state = words.state("state")?;
    let (mut id, mut error, mut payload) = (None, None, None);
    let (mut label, mut group, mut batch, mut parent, mut header) = (None, None, None, None, None);
    let (mut since, mut until, mut cursor, mut count) = (None, None, None, None);
    let (mut reverse, mut ids, mut act) = (false, false, None);
    while let Some(option) = words.option() {
        match option.name() {
            what @ "ID" => once(&mut id, what, glob(&mut words, what)?)?,
            what @ "TYPE" => once(&mut label, what, words.name(what)?)?,
            what @ "GROUP" => once(&mut group, what, words.name(what)?)?,
            what @ "BATCH" => once(&mut batch, what, words.name(what)?)?,
            what @ "PARENT" => {
                let key_and_id = (words.bytes(what)?, words.name(what)?);
                once(&mut parent, what, key_and_id)?;
            }
            what @ "HEADER" => {
                let field_and_value = (words.bytes(what)?, words.bytes(what)?);
                once(&mut header, what, field_and_value)?;
            }
            what @ "ERROR" => once(&mut error, what, glob(&mut words, what)?)?,
            what @ "PAYLOAD" => once(&mut payload, what, glob(&mut words, what)?)?,
            what @ "SINCE" => once(&mut since, what, words.number(what, MS)?)?,
            what @ "UNTIL" => once(&mut until, what, words.number(what, MS)?)?,
            what @ "REV" => flag(&mut reverse, what)?,
            what @ "CURSOR" => once(&mut cursor, what, read_cursor(&mut words, what, "DQ.FIND")?)?,
            what @ "COUNT" => once(&mut count, what, words.number(what, COUNT)?)?,
            what @ "IDS" => flag(&mut ids, what)?,
            what @ "DO" => once(&mut act, what, find_act(&mut words, what)?)?,
            _ => return Err(option.unknown()),
        }
    }
    exclude(("IDS", ids), ("DO", act.is_some()))?;
    if act == Some(FindAct::Redrive) && state != State::Dead {
        let state = state.name();
        return Err(format!("ERR DO REDRIVE needs the state dead, not {state}").into());
    }
    let search = Search {
        state,
        id,
        label,
        group,
        batch,
        parent,
        header,
        error,
        payload,
        since,
        until,
        reverse,
        cursor: cursor.flatten(),
        count: count.unwrap_or(STEP) as usize,
    };
    let found = match act {
        Some(act) => Found::Do(act),
        None if ids => Found::Ids,
        None => Found::Messages,
    };
    Ok(FindRequest { search, found })
}

fn find_act(words: &mut Words<'_>, what: &str) -> Parsed<FindAct> {
    let acts = [
        ("REDRIVE", FindAct::Redrive),
        ("CANCEL", FindAct::Cancel),
        ("PURGE", FindAct::Purge),
    ];
    words.choice(what, "REDRIVE, CANCEL or PURGE", &acts)
}

/// Reads a pattern. Its length is limited, since it is matched with many texts.
fn glob(words: &mut Words<'_>, what: &str) -> Parsed<Glob> {
    let pattern = words.bytes(what)?;
    if pattern.len() > MAX_GLOB {
        let len = pattern.len();
        return Err(format!("ERR {what} must be at most {MAX_GLOB} bytes long, not {len}").into());
    }
    Ok(Glob::new(pattern))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::testing::words;
    use crate::queue::inspect::cursor::Cursor;

    #[test]
    fn every_option_is_read_in_any_case_and_order() {
        let text = "DEAD rev do redrive count 10000 Cursor 7-3 until 9 since 0 payload *x error ? \
            header REV IDS group g batch b parent GROUP p type t id a*";
        words(text, |w| {
            let expected = FindRequest {
                search: Search {
                    state: State::Dead,
                    id: Some(Glob::new(b"a*")),
                    label: Some(b"t"),
                    group: Some(b"g"),
                    batch: Some(b"b"),
                    parent: Some((b"GROUP", b"p")),
                    header: Some((b"REV", b"IDS")),
                    error: Some(Glob::new(b"?")),
                    payload: Some(Glob::new(b"*x")),
                    since: Some(0),
                    until: Some(9),
                    reverse: true,
                    cursor: Cursor::parse(b"7-3").unwrap(),
                    count: 10_000,
                },
                found: Found::Do(FindAct::Redrive),
            };
            assert_eq!(find(w), Ok(expected));
        });
        words("ready ids", |w| {
            assert_eq!(find(w).unwrap().found, Found::Ids)
        });
    }
}
