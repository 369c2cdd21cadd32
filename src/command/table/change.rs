//! Steering what is there.

use super::options::{
    BACKOFF, COUNT, DUE, GROUP, HEADERS, LEASE, PRIORITY, RATE, RETRIES, SCORE, TTL, TYPE,
};
use super::FIRST;
use crate::command::spec::{Access, Arg, CommandSpec, Keys};
use crate::command::{apply, change, group, schedule};

pub const CANCEL: CommandSpec = CommandSpec {
    name: "DQ.CANCEL",
    handler: change::cancel,
    flags: "write fast",
    arity: -3,
    keys: Keys::First,
    access: Access::Delete,
    summary: "Cancels messages and says which state each was in.",
    complexity: "O(M log N) with M ids and N messages in the queue",
    since: FIRST,
    args: &[Arg::key(), Arg::text("id").multiple()],
};

pub const RESCHEDULE: CommandSpec = CommandSpec {
    name: "DQ.RESCHEDULE",
    handler: change::reschedule,
    flags: "write fast",
    arity: 5,
    keys: Keys::First,
    access: Access::Update,
    summary: "Changes when a message is due.",
    complexity: "O(log N) with N messages in the queue",
    since: FIRST,
    args: &[Arg::key(), Arg::text("id"), DUE],
};

pub const UPDATE: CommandSpec = CommandSpec {
    name: "DQ.UPDATE",
    handler: change::update,
    flags: "write deny-oom fast",
    arity: 4,
    keys: Keys::First,
    access: Access::Update,
    summary: "Changes the payload of a message.",
    complexity: "O(1)",
    since: FIRST,
    args: &[Arg::key(), Arg::text("id"), Arg::text("payload")],
};

pub const REDRIVE: CommandSpec = CommandSpec {
    name: "DQ.REDRIVE",
    handler: change::redrive,
    flags: "write",
    arity: -3,
    keys: Keys::First,
    access: Access::Update,
    summary: "Makes dead messages pending again.",
    complexity: "O(M log N) with M messages revived and N in the queue",
    since: FIRST,
    args: &[
        Arg::key(),
        Arg::one_of(
            "which",
            &[
                Arg::block("all", &[Arg::word("all", "ALL"), COUNT]),
                Arg::block("ids", &[Arg::integer("numids"), Arg::text("id").multiple()])
                    .after("IDS"),
            ],
        ),
    ],
};

pub const PURGE: CommandSpec = CommandSpec {
    name: "DQ.PURGE",
    handler: change::purge,
    flags: "write",
    arity: -2,
    keys: Keys::First,
    access: Access::Delete,
    summary: "Removes messages, of one state or group or all.",
    complexity: "O(M log N) with M messages removed of N, spread over time where M is large",
    since: FIRST,
    args: &[
        Arg::key(),
        Arg::text("state").after("STATE").optional(),
        GROUP,
    ],
};

pub const PAUSE: CommandSpec = CommandSpec {
    name: "DQ.PAUSE",
    handler: group::pause,
    flags: "write deny-oom fast",
    arity: -2,
    keys: Keys::First,
    access: Access::Update,
    summary: "Stops deliveries of a queue or of one group of it.",
    complexity: "O(log N) with N messages in the queue",
    since: FIRST,
    args: &[
        Arg::key(),
        GROUP,
        Arg::integer("for").after("FOR").optional(),
    ],
};

pub const RESUME: CommandSpec = CommandSpec {
    name: "DQ.RESUME",
    handler: group::resume,
    flags: "write fast",
    arity: -2,
    keys: Keys::First,
    access: Access::Update,
    summary: "Ends a pause, and what holds a group since a message of it died.",
    complexity: "O(log N) with N messages in the queue",
    since: FIRST,
    args: &[Arg::key(), GROUP],
};

pub const GROUPSET: CommandSpec = CommandSpec {
    name: "DQ.GROUPSET",
    handler: group::group_set,
    flags: "write deny-oom fast",
    arity: -3,
    keys: Keys::First,
    access: Access::Update,
    summary: "Gives a group settings of its own.",
    complexity: "O(log N) with N messages in the queue",
    since: FIRST,
    args: &[
        Arg::key(),
        Arg::text("group"),
        Arg::integer("weight").after("WEIGHT").optional(),
        Arg::integer("concurrency").after("CONCURRENCY").optional(),
        RATE,
    ],
};

pub const SCHEDULE: CommandSpec = CommandSpec {
    name: "DQ.SCHEDULE",
    handler: schedule::schedule,
    flags: "write deny-oom",
    arity: -7,
    keys: Keys::First,
    access: Access::Insert,
    summary: "Has the server send a message again and again by a rule.",
    complexity: "O(log S) with S schedules",
    since: FIRST,
    args: &[
        Arg::key(),
        Arg::text("name"),
        Arg::one_of(
            "rule",
            &[
                Arg::block(
                    "cron",
                    &[
                        Arg::text("expression"),
                        Arg::text("zone").after("TZ").optional(),
                    ],
                )
                .after("CRON"),
                Arg::block(
                    "every",
                    &[
                        Arg::integer("ms"),
                        Arg::time("start").after("START").optional(),
                    ],
                )
                .after("EVERY"),
            ],
        ),
        Arg::text("payload").after("PAYLOAD"),
        GROUP,
        SCORE,
        PRIORITY,
        LEASE,
        RETRIES,
        BACKOFF,
        TTL,
        TYPE,
        HEADERS,
        Arg::one_of(
            "missed",
            &[
                Arg::word("skip", "SKIP"),
                Arg::word("once", "ONCE"),
                Arg::word("all", "ALL"),
            ],
        )
        .after("MISSED")
        .optional(),
        Arg::one_of(
            "overlap",
            &[Arg::word("queue", "QUEUE"), Arg::word("skip", "SKIP")],
        )
        .after("OVERLAP")
        .optional(),
    ],
};

pub const UNSCHEDULE: CommandSpec = CommandSpec {
    name: "DQ.UNSCHEDULE",
    handler: schedule::unschedule,
    flags: "write fast",
    arity: 3,
    keys: Keys::First,
    access: Access::Delete,
    summary: "Removes a schedule.",
    complexity: "O(log S) with S schedules",
    since: FIRST,
    args: &[Arg::key(), Arg::text("name")],
};

pub const OP: CommandSpec = CommandSpec {
    name: "DQ.OP",
    handler: apply::apply,
    flags: "write admin",
    arity: -3,
    keys: Keys::First,
    access: Access::Update,
    summary:
        "Repeats operations on replicas and when the append-only file is loaded; not for clients.",
    complexity: "That of the operations",
    since: FIRST,
    args: &[Arg::key(), Arg::text("record").multiple()],
};
