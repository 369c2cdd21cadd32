//! Tests of the arguments of CANCEL, RESCHEDULE, UPDATE, REDRIVE, PURGE.

use crate::args::cancel::*;
use crate::args::purge::*;
use crate::args::redrive::*;
use crate::args::reschedule::*;
use crate::args::testing::{error, words};
use crate::args::update::*;
use crate::args::{Parsed, Words};
use crate::message::state::State;
use crate::op::{DueTime, Op, Redrive};

type Parser = fn(Words<'_>) -> Parsed<Op<'_>>;

fn update_10(words: Words<'_>) -> Parsed<Op<'_>> {
    update(words, 10)
}

#[test]
fn valid_arguments_become_operations() {
    let table: [(Parser, &str, Op); 12] = [
        (
            cancel,
            "a ALL",
            Op::Cancel {
                ids: vec![b"a"[..].into(), b"ALL"[..].into()],
            },
        ),
        (
            reschedule,
            "AT delay 5",
            Op::Reschedule {
                id: b"AT"[..].into(),
                due: DueTime::After(5),
            },
        ),
        (
            reschedule,
            "a AT 0",
            Op::Reschedule {
                id: b"a"[..].into(),
                due: DueTime::At(0),
            },
        ),
        (
            update_10,
            "a 0123456789",
            Op::Update {
                id: b"a"[..].into(),
                payload: b"0123456789"[..].into(),
            },
        ),
        (redrive, "all", Op::Redrive(Redrive::Oldest(u64::MAX))),
        (
            redrive,
            "ALL COUNT 10000",
            Op::Redrive(Redrive::Oldest(10_000)),
        ),
        (
            redrive,
            "IDS 2 a ALL",
            Op::Redrive(Redrive::Ids(vec![b"a"[..].into(), b"ALL"[..].into()])),
        ),
        (
            purge,
            "",
            Op::Purge {
                state: None,
                group: None,
            },
        ),
        (
            purge,
            "GROUP g STATE Dead",
            Op::Purge {
                state: Some(State::Dead),
                group: Some(b"g"[..].into()),
            },
        ),
        (
            purge,
            "STATE delayed",
            Op::Purge {
                state: Some(State::Delayed),
                group: None,
            },
        ),
        (
            purge,
            "STATE blocked",
            Op::Purge {
                state: Some(State::Blocked),
                group: None,
            },
        ),
        (
            purge,
            "GROUP STATE",
            Op::Purge {
                state: None,
                group: Some(b"STATE"[..].into()),
            },
        ),
    ];
    for (parse, text, expected) in table {
        let read = words(text, |w| parse(w).map(|op| format!("{op:?}")));
        assert_eq!(read, Ok(format!("{expected:?}")), "{text}");
    }
}

#[test]
fn ids_must_have_1_to_1024_bytes() {
    let long = "x".repeat(1025);
    let table: [(Parser, String); 4] = [
        (cancel, format!("a {long}")),
        (reschedule, format!("{long} AT 5")),
        (update_10, format!("{long} p")),
        (redrive, format!("IDS 2 a {long}")),
    ];
    for (parse, text) in table {
        let error = words(&text, |w| error(parse(w)));
        assert!(error.ends_with("must be 1 to 1024 bytes long, not 1025"));
    }
}

#[test]
fn invalid_arguments_are_refused_with_an_error() {
    let table: [(Parser, &str, &str); 16] = [
        (reschedule, "a IN 5", "unknown option 'IN'"),
        (reschedule, "a", "DELAY or AT is missing"),
        (
            reschedule,
            "a DELAY x",
            "DELAY must be an integer from 0 to 9007199254740991, not 'x'",
        ),
        (reschedule, "a DELAY 5 AT", "unknown option 'AT'"),
        (
            update_10,
            "a 01234567890",
            "payload must be at most 10 bytes long (dq.max-payload), not 11",
        ),
        (redrive, "", "ALL or IDS is missing"),
        (redrive, "SOME", "unknown option 'SOME'"),
        (
            redrive,
            "ALL COUNT 0",
            "COUNT must be an integer from 1 to 10000, not '0'",
        ),
        (redrive, "ALL COUNT 1 COUNT 1", "COUNT is given twice"),
        (redrive, "ALL IDS 1 a", "unknown option 'IDS'"),
        (
            redrive,
            "IDS 0",
            "IDS must be an integer from 1 to 9007199254740991, not '0'",
        ),
        (
            redrive,
            "IDS 2 a",
            "IDS is followed by fewer values than it says",
        ),
        (redrive, "IDS 1 a b", "unknown option 'b'"),
        (
            purge,
            "STATE x",
            "STATE must be delayed, ready, blocked, retry, running, finished, dead, \
             cancelled or held, not 'x'",
        ),
        (purge, "STATE ready STATE ready", "STATE is given twice"),
        (purge, "NONSENSE", "unknown option 'NONSENSE'"),
    ];
    for (parse, text, expected) in table {
        let error = words(text, |w| error(parse(w)));
        assert_eq!(error, format!("ERR {expected}"));
    }
}
