//! Tests of the arguments of PAUSE, RESUME, GROUPSET.

use crate::args::groupset::*;
use crate::args::pause::*;
use crate::args::resume::*;
use crate::args::testing::{error, words};
use crate::args::{Parsed, Words};
use crate::op::{GroupChanges, Op};
use crate::settings::Rate;

type Parser = fn(Words<'_>) -> Parsed<Op<'_>>;

#[test]
fn valid_arguments_become_operations() {
    let set = |changes| Op::GroupSet {
        group: b"RATE"[..].into(),
        changes,
    };
    let table: [(Parser, &str, Op); 7] = [
        (
            pause,
            "",
            Op::Pause {
                group: None,
                ms: None,
            },
        ),
        (
            pause,
            "for 1 group FOR",
            Op::Pause {
                group: Some(b"FOR"[..].into()),
                ms: Some(1),
            },
        ),
        (resume, "", Op::Resume { group: None }),
        (
            resume,
            "GROUP g",
            Op::Resume {
                group: Some(b"g"[..].into()),
            },
        ),
        (group_set, "RATE", set(GroupChanges::default())),
        (
            group_set,
            "RATE RATE 2 PER 3 CONCURRENCY 0 weight 4",
            set(GroupChanges {
                weight: Some(4),
                concurrency: Some(0),
                rate: Some(Some(Rate { count: 2, per: 3 })),
            }),
        ),
        (
            group_set,
            "RATE RATE 0",
            set(GroupChanges {
                rate: Some(None),
                ..GroupChanges::default()
            }),
        ),
    ];
    for (parse, text, expected) in table {
        let read = words(text, |w| parse(w).map(|op| format!("{op:?}")));
        assert_eq!(read, Ok(format!("{expected:?}")), "{text}");
    }
}

#[test]
fn invalid_arguments_are_refused_with_an_error() {
    let range = |low| format!("must be an integer from {low} to 9007199254740991, not");
    let table: [(Parser, &str, String); 9] = [
        (pause, "FOR 0", format!("FOR {} '0'", range(1))),
        (pause, "FOR 5 FOR 5", "FOR is given twice".to_owned()),
        (pause, "GROUP", "GROUP needs a value".to_owned()),
        (resume, "FOR 5", "unknown option 'FOR'".to_owned()),
        (group_set, "g WEIGHT 0", format!("WEIGHT {} '0'", range(1))),
        (
            group_set,
            "g CONCURRENCY -1",
            format!("CONCURRENCY {} '-1'", range(0)),
        ),
        (group_set, "g RATE 1", "RATE needs PER".to_owned()),
        (group_set, "g PER 5", "unknown option 'PER'".to_owned()),
        (group_set, "g RATE 1 PER 0", format!("PER {} '0'", range(1))),
    ];
    for (parse, text, expected) in table {
        let error = words(text, |w| error(parse(w)));
        assert_eq!(error, format!("ERR {expected}"));
    }
}
