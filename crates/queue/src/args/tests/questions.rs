//! Tests of the arguments of GET, LEN, PEEK, LIST, GROUPS, WAIT.

use crate::args::get::*;
use crate::args::groups::*;
use crate::args::len::*;
use crate::args::list::*;
use crate::args::peek::*;
use crate::args::testing::{error, words};
use crate::args::wait::*;
use crate::args::Parsed;
use crate::message::state::State;
use crate::queue::inspect::groups::{GroupState, WantedGroups};
use crate::queue::inspect::list::Listing;
use crate::queue::inspect::walk::Cursor;

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
            "state must be delayed, ready, blocked, retry, running, finished, dead, \
             cancelled or held, not 'pending'",
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
        let text = format!("DEAD ids TYPE t GROUP TYPE rev COUNT 3 CURSOR {cursor}");
        let listing = Listing {
            state: State::Dead,
            cursor: Cursor::parse(cursor.as_bytes()).unwrap(),
            count: 3,
            reverse: true,
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
        wanted: Some(WantedGroups::In(GroupState::Paused)),
    };
    assert_eq!(words("STATE PAUSED cursor 7 COUNT 2", groups), Ok(request));
    let request = GroupsRequest {
        cursor: 0,
        count: 10,
        wanted: None,
    };
    assert_eq!(
        words("STATE Held", groups).map(|asked| asked.wanted),
        Ok(Some(WantedGroups::Held))
    );
    assert_eq!(words("", groups), Ok(request));
    let text = "ERR STATE must be ready, running, blocked, paused or held, not 'waiting'";
    assert_eq!(error(words("STATE waiting", groups)), text);
}
