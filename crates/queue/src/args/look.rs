//! Reads the arguments of GET, EXPLAIN, LEN, PEEK, LIST, GROUPS and WAIT, none
//! of which changes a queue.

use super::option::{flag, once};
use super::words::{instead, ANY, COUNT, MS};
use super::{Parsed, Words};
use crate::queue::list::{Cursor, Listing};
use crate::queue::look::GroupState;
use crate::state::State;
use crate::Millis;

/// The COUNT of LIST and GROUPS if none is given.
const STEP: u64 = 10;

/// The arguments of LIST.
#[derive(Debug, Clone, Copy)]
pub struct ListRequest<'a> {
    /// Which messages to list.
    pub listing: Listing<'a>,
    /// Whether the reply holds only the ids of the messages.
    pub ids: bool,
}

/// The arguments of GROUPS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupsRequest {
    /// Where to continue; 0 begins at the start.
    pub cursor: u64,
    /// The most groups to return; at least 1.
    pub count: usize,
    /// Return only groups in this state.
    pub state: Option<GroupState>,
}

/// The arguments of WAIT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitRequest<'a> {
    /// The id of the message whose end is waited for.
    pub id: &'a [u8],
    /// How long to wait, in ms; 0 waits without a limit.
    pub ms: Millis,
}

/// Reads the arguments of GET and EXPLAIN: `id`
pub fn message(mut words: Words<'_>) -> Parsed<&[u8]> {
    let id = words.name("id")?;
    words.end()?;
    Ok(id)
}

/// Reads the arguments of LEN: `[state]`
pub fn len(mut words: Words<'_>) -> Parsed<Option<State>> {
    let state = match words.left() {
        0 => None,
        _ => Some(words.state("state")?),
    };
    words.end()?;
    Ok(state)
}

/// Reads the arguments of PEEK: `[COUNT n]`. Returns 1 if no count is given.
pub fn peek(mut words: Words<'_>) -> Parsed<usize> {
    let mut count = None;
    while let Some(option) = words.option() {
        match option.name() {
            what @ "COUNT" => once(&mut count, what, words.number(what, COUNT)?)?,
            _ => return Err(option.unknown()),
        }
    }
    Ok(count.unwrap_or(1) as usize)
}

/// Reads the arguments of LIST: `state [CURSOR c] [COUNT n] [GROUP g] [TYPE t]
/// [IDS]`
pub fn list(mut words: Words<'_>) -> Parsed<ListRequest<'_>> {
    let state = words.state("state")?;
    let (mut cursor, mut count, mut group, mut label) = (None, None, None, None);
    let mut ids = false;
    while let Some(option) = words.option() {
        match option.name() {
            what @ "CURSOR" => once(&mut cursor, what, read_cursor(&mut words, what)?)?,
            what @ "COUNT" => once(&mut count, what, words.number(what, COUNT)?)?,
            what @ "GROUP" => once(&mut group, what, words.name(what)?)?,
            what @ "TYPE" => once(&mut label, what, words.name(what)?)?,
            what @ "IDS" => flag(&mut ids, what)?,
            _ => return Err(option.unknown()),
        }
    }
    let listing = Listing {
        state,
        cursor: cursor.flatten(),
        count: count.unwrap_or(STEP) as usize,
        group,
        label,
    };
    Ok(ListRequest { listing, ids })
}

fn read_cursor(words: &mut Words<'_>, what: &str) -> Parsed<Option<Cursor>> {
    let word = words.bytes(what)?;
    Cursor::parse(word).ok_or_else(|| instead(what, "0 or one that DQ.LIST has answered", word))
}

/// Reads the arguments of GROUPS: `[CURSOR c] [COUNT n] [STATE ready | running
/// | blocked | paused]`
pub fn groups(mut words: Words<'_>) -> Parsed<GroupsRequest> {
    let (mut cursor, mut count, mut state) = (None, None, None);
    while let Some(option) = words.option() {
        match option.name() {
            what @ "CURSOR" => once(&mut cursor, what, words.number(what, ANY)?)?,
            what @ "COUNT" => once(&mut count, what, words.number(what, COUNT)?)?,
            what @ "STATE" => {
                let choices = [
                    GroupState::Ready,
                    GroupState::Running,
                    GroupState::Blocked,
                    GroupState::Paused,
                ]
                .map(|state| (state.name(), state));
                let expected = "ready, running, blocked or paused";
                once(&mut state, what, words.choice(what, expected, &choices)?)?
            }
            _ => return Err(option.unknown()),
        }
    }
    Ok(GroupsRequest {
        cursor: cursor.unwrap_or(0),
        count: count.unwrap_or(STEP) as usize,
        state,
    })
}

/// Reads the arguments of WAIT: `id ms`
pub fn wait(mut words: Words<'_>) -> Parsed<WaitRequest<'_>> {
    let id = words.name("id")?;
    let ms = words.number("ms", MS)?;
    words.end()?;
    Ok(WaitRequest { id, ms })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::testing::{error, words};

    fn list_text(text: &str) -> Parsed<String> {
        words(text, |w| list(w).map(|request| format!("{request:?}")))
    }

    #[test]
    fn get_wait_len_and_peek_read_their_arguments() {
        words("ID", |w| assert_eq!(message(w), Ok(&b"ID"[..])));
        words("a 0", |w| {
            assert_eq!(wait(w), Ok(WaitRequest { id: b"a", ms: 0 }))
        });
        assert_eq!(words("", len), Ok(None));
        assert_eq!(words("Retry", len), Ok(Some(State::Retry)));
        assert_eq!(words("", peek), Ok(1));
        assert_eq!(words("count 10000", peek), Ok(10_000));
        for (error, expected) in [
            (
                error(words("pending", len)),
                "state must be delayed, ready, blocked, retry, running, finished, dead or \
                 cancelled, not 'pending'",
            ),
            (error(words("ready ready", len)), "unknown option 'ready'"),
            (
                error(words("COUNT 10001", peek)),
                "COUNT must be an integer from 1 to 10000, not '10001'",
            ),
            (
                error(words("a -1", |w| wait(w).map(|_| ()))),
                "ms must be an integer from 0 to 9007199254740991, not '-1'",
            ),
        ] {
            assert_eq!(error, format!("ERR {expected}"));
        }
    }

    #[test]
    fn list_reads_a_state_and_its_filters() {
        for cursor in ["0", "5-7"] {
            let text = format!("DEAD ids TYPE t GROUP TYPE COUNT 3 CURSOR {cursor}");
            let listing = Listing {
                state: State::Dead,
                cursor: Cursor::parse(cursor.as_bytes()).unwrap(),
                count: 3,
                group: Some(b"TYPE"),
                label: Some(b"t"),
            };
            let request = ListRequest { listing, ids: true };
            assert_eq!(list_text(&text), Ok(format!("{request:?}")));
        }
        assert!(list_text("dead").is_ok_and(|text| text.contains("count: 10")));
        for (text, expected) in [
            (
                "dead CURSOR x",
                "CURSOR must be 0 or one that DQ.LIST has answered, not 'x'",
            ),
            ("dead CURSOR 0 CURSOR 0", "CURSOR is given twice"),
            ("dead GROUP", "GROUP needs a value"),
            ("dead STATE dead", "unknown option 'STATE'"),
        ] {
            assert_eq!(error(list_text(text)), format!("ERR {expected}"));
        }
    }

    #[test]
    fn groups_reads_a_cursor_a_count_and_a_state() {
        let request = GroupsRequest {
            cursor: 7,
            count: 2,
            state: Some(GroupState::Paused),
        };
        assert_eq!(words("STATE PAUSED cursor 7 COUNT 2", groups), Ok(request));
        let request = GroupsRequest {
            cursor: 0,
            count: 10,
            state: None,
        };
        assert_eq!(words("", groups), Ok(request));
        let text = "ERR STATE must be ready, running, blocked or paused, not 'waiting'";
        assert_eq!(error(words("STATE waiting", groups)), text);
    }
}
