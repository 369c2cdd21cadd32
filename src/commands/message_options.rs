//! Describes the options of a message, which SEND, MSEND, ACKSEND, GROUPPUSH and SCHEDULE share.

use super::options::{
    BACKOFF, BATCH, DUE, ERRORS, GROUP, ID, LEASE, MAX_TIMEOUTS, RETRIES, TTL, TYPE,
};
use crate::redis::spec::Arg;
use dq_queue::args::Scope;

/// `REPLACE`
const REPLACE: Arg = Arg::word("replace", "REPLACE").optional();
/// `RERUN`
const RERUN: Arg = Arg::word("rerun", "RERUN").optional();
/// `DEDUPID id ms`
const DEDUP_ID: Arg = Arg::block(
    "dedupid",
    &[Arg::text("dedupid"), Arg::integer("milliseconds")],
)
.after("DEDUPID")
.optional();
/// `SCORE x`
const SCORE: Arg = Arg::double("score").after("SCORE").optional();
/// `PRIORITY p`
const PRIORITY: Arg = Arg::integer("priority").after("PRIORITY").optional();
/// `RETAIN ms`
const RETAIN: Arg = Arg::integer("retain").after("RETAIN").optional();
/// `EXPIREAT unix-ms`
const EXPIRE_AT: Arg = Arg::time("expireat").after("EXPIREAT").optional();
/// `MAXWAIT ms`
const MAX_WAIT: Arg = Arg::integer("maxwait").after("MAXWAIT").optional();
/// `IFGROUP`
const IF_GROUP: Arg = Arg::word("ifgroup", "IFGROUP").optional();
/// `HEADERS n field value ...`
const HEADERS: Arg = Arg::block(
    "headers",
    &[
        Arg::integer("numfields"),
        Arg::block("header", &[Arg::text("field"), Arg::text("value")]).multiple(),
    ],
)
.after("HEADERS")
.optional();
/// `AFTER b [ONFAIL HOLD | GO | DIE]`
const AFTER: Arg = Arg::block(
    "after",
    &[
        Arg::text("batch"),
        Arg::one_of(
            "onfail",
            &[
                Arg::word("hold", "HOLD"),
                Arg::word("go", "GO"),
                Arg::word("die", "DIE"),
            ],
        )
        .after("ONFAIL")
        .optional(),
    ],
)
.after("AFTER")
.optional();

/// `PARK [FOR ms]`
pub const PARK: Arg = Arg::block(
    "park",
    &[
        Arg::word("park", "PARK"),
        Arg::integer("for").after("FOR").optional(),
    ],
)
.optional();
/// `LIMITS n name ...`
const LIMITS: Arg = Arg::block(
    "limits",
    &[Arg::integer("numlimits"), Arg::text("limit").multiple()],
)
.after("LIMITS")
.optional();
/// `COST c`
const COST: Arg = Arg::integer("cost").after("COST").optional();

/// `CHILDREN n`
const CHILDREN: Arg = Arg::integer("children").after("CHILDREN").optional();
/// `PARENT key id [ONDEAD HOLD | GO | DIE]`
const PARENT: Arg = Arg::block(
    "parent",
    &[
        Arg::key(),
        Arg::text("parentid"),
        Arg::one_of(
            "ondead",
            &[
                Arg::word("hold", "HOLD"),
                Arg::word("go", "GO"),
                Arg::word("die", "DIE"),
            ],
        )
        .after("ONDEAD")
        .optional(),
    ],
)
.after("PARENT")
.optional();

/// The conditions on a command for an option of a message, in the terms of [`Scope`].
#[derive(Clone, Copy)]
enum Needs {
    Nothing,
    Id,
    Due,
    Group,
    Kin,
}

impl Needs {
    const fn is_met_by(self, scope: Scope) -> bool {
        match self {
            Needs::Nothing => true,
            Needs::Id => scope.id,
            Needs::Due => scope.due,
            Needs::Group => scope.group,
            Needs::Kin => scope.kin,
        }
    }
}

/// The options of a message, in the order of COMMAND DOCS.
const OF_MESSAGE: [(Needs, Arg); 27] = [
    (Needs::Id, ID),
    (Needs::Id, REPLACE),
    // The option needs REPLACE.
    (Needs::Id, RERUN),
    (Needs::Id, DEDUP_ID),
    (Needs::Due, DUE.optional()),
    (Needs::Group, GROUP),
    (Needs::Nothing, SCORE),
    (Needs::Nothing, PRIORITY),
    (Needs::Nothing, LEASE),
    (Needs::Nothing, RETRIES),
    (Needs::Nothing, BACKOFF),
    (Needs::Nothing, TTL),
    (Needs::Nothing, TYPE),
    (Needs::Nothing, HEADERS),
    (Needs::Nothing, RETAIN),
    (Needs::Due, EXPIRE_AT),
    // The option needs REPLACE.
    (Needs::Id, MAX_WAIT),
    (Needs::Nothing, IF_GROUP),
    (Needs::Nothing, BATCH),
    (Needs::Nothing, AFTER),
    (Needs::Nothing, PARK),
    (Needs::Nothing, MAX_TIMEOUTS),
    (Needs::Nothing, ERRORS),
    (Needs::Nothing, LIMITS),
    (Needs::Nothing, COST),
    (Needs::Kin, CHILDREN),
    (Needs::Kin, PARENT),
];

/// The arguments of a command that sends messages: `before`, the options of a message that are in
/// its scope, and `behind`. Another `N` than their number does not compile.
pub const fn with_message_options<const N: usize>(
    before: &[Arg],
    scope: Scope,
    behind: &[Arg],
) -> [Arg; N] {
    let mut args = [Arg::key(); N];
    let mut len = append(&mut args, 0, before);
    let mut at = 0;
    while at < OF_MESSAGE.len() {
        let (needs, option) = OF_MESSAGE[at];
        if needs.is_met_by(scope) {
            len = append(&mut args, len, &[option]);
        }
        at += 1;
    }
    len = append(&mut args, len, behind);
    assert!(len == N, "N is larger than the number of arguments");
    args
}

/// Writes `more` behind the first `len` of `args`. Returns the new number.
const fn append(args: &mut [Arg], len: usize, more: &[Arg]) -> usize {
    let mut at = 0;
    while at < more.len() {
        args[len + at] = more[at];
        at += 1;
    }
    len + at
}
