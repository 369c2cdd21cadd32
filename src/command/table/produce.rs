//! Making queues and sending.

use super::options::{
    BACKOFF, DUE, GROUP, HEADERS, ID, LEASE, PRIORITY, RATE, REPLACE, RETRIES, SCORE, TTL, TYPE,
};
use super::FIRST;
use crate::command::spec::{Access, Arg, CommandSpec, Keys};
use crate::command::{alter, create, send};

const fn number(name: &'static str, token: &'static str) -> Arg {
    Arg::integer(name).after(token).optional()
}

const ON_RETRY: Arg = Arg::one_of(
    "onretry",
    &[Arg::word("block", "BLOCK"), Arg::word("skip", "SKIP")],
)
.after("ONRETRY")
.optional();

const ON_DEAD: Arg = Arg::one_of(
    "ondead",
    &[
        Arg::word("continue", "CONTINUE"),
        Arg::word("block", "BLOCK"),
    ],
)
.after("ONDEAD")
.optional();

const CLOCK: Arg = Arg::one_of(
    "clock",
    &[
        Arg::word("server", "SERVER"),
        Arg::time("start").after("MANUAL"),
    ],
)
.after("CLOCK")
.optional();

pub const CREATE: CommandSpec = CommandSpec {
    name: "DQ.CREATE",
    handler: create::create,
    flags: "write deny-oom fast",
    arity: -2,
    keys: Keys::First,
    access: Access::Insert,
    summary: "Makes a queue with options of its own.",
    complexity: "O(1)",
    since: FIRST,
    args: &[
        Arg::key(),
        LEASE,
        RETRIES,
        BACKOFF,
        number("maxbackoff", "MAXBACKOFF"),
        number("jitter", "JITTER"),
        TTL,
        number("retain", "RETAIN"),
        number("retaincount", "RETAINCOUNT"),
        number("deadretain", "DEADRETAIN"),
        number("deadcount", "DEADCOUNT"),
        number("dedup", "DEDUP"),
        number("maxlen", "MAXLEN"),
        number("maxbytes", "MAXBYTES"),
        number("maxrunning", "MAXRUNNING"),
        RATE,
        number("groupconcurrency", "GROUPCONCURRENCY"),
        ON_RETRY,
        ON_DEAD,
        CLOCK,
    ],
};

const ONE_SETTING: Arg = Arg::block("setting", &[Arg::text("option"), Arg::text("value")]);

pub const ALTER: CommandSpec = CommandSpec {
    name: "DQ.ALTER",
    handler: alter::alter,
    flags: "write fast",
    arity: -4,
    keys: Keys::First,
    access: Access::Update,
    summary: "Changes options of a queue, for the messages in it too.",
    complexity: "O(1)",
    since: FIRST,
    args: &[Arg::key(), ONE_SETTING.multiple()],
};

pub const SEND: CommandSpec = CommandSpec {
    name: "DQ.SEND",
    handler: send::send,
    flags: "write deny-oom fast",
    arity: -3,
    keys: Keys::First,
    access: Access::Insert,
    summary: "Adds a message, due now or later.",
    complexity: "O(log N) with N messages in the queue",
    since: FIRST,
    args: &[
        Arg::key(),
        Arg::text("payload"),
        ID,
        REPLACE,
        DUE.optional(),
        GROUP,
        SCORE,
        PRIORITY,
        LEASE,
        RETRIES,
        BACKOFF,
        TTL,
        TYPE,
        HEADERS,
    ],
};

pub const MSEND: CommandSpec = CommandSpec {
    name: "DQ.MSEND",
    handler: send::multi,
    flags: "write deny-oom",
    arity: -4,
    keys: Keys::First,
    access: Access::Insert,
    summary: "Adds several messages with the same options, all or none.",
    complexity: "O(M log N) with M messages added to N in the queue",
    since: FIRST,
    args: &[
        Arg::key(),
        Arg::integer("numpayloads"),
        Arg::text("payload").multiple(),
        DUE.optional(),
        GROUP,
        SCORE,
        PRIORITY,
        LEASE,
        RETRIES,
        BACKOFF,
        TTL,
        TYPE,
        HEADERS,
    ],
};

pub const GROUPPUSH: CommandSpec = CommandSpec {
    name: "DQ.GROUPPUSH",
    handler: send::group_push,
    flags: "write deny-oom",
    arity: -6,
    keys: Keys::First,
    access: Access::Insert,
    summary: "Adds a JSON object as a message, its group read from its fields.",
    complexity: "O(L + log N) with a payload of L bytes and N messages in the queue",
    since: FIRST,
    args: &[
        Arg::key(),
        Arg::text("json"),
        Arg::block(
            "groupby",
            &[Arg::integer("numpaths"), Arg::text("path").multiple()],
        )
        .after("GROUPBY"),
        Arg::text("idpath").after("IDPATH").optional(),
        Arg::text("scorepath").after("SCOREPATH").optional(),
        Arg::text("atpath").after("ATPATH").optional(),
        ID,
        REPLACE,
        DUE.optional(),
        SCORE,
        PRIORITY,
        LEASE,
        RETRIES,
        BACKOFF,
        TTL,
        TYPE,
        HEADERS,
    ],
};
