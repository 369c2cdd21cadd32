//! Looking without changing.

use super::options::{COUNT, CURSOR, GROUP, TYPE};
use super::FIRST;
use crate::command::spec::{Access, Arg, CommandSpec, Keys};
use crate::command::{info, look, wait, Handler};

const STATE: Arg = Arg::one_of(
    "state",
    &[
        Arg::word("delayed", "DELAYED"),
        Arg::word("ready", "READY"),
        Arg::word("blocked", "BLOCKED"),
        Arg::word("retry", "RETRY"),
        Arg::word("running", "RUNNING"),
        Arg::word("finished", "FINISHED"),
        Arg::word("dead", "DEAD"),
        Arg::word("cancelled", "CANCELLED"),
    ],
);

const fn looking(
    name: &'static str,
    handler: Handler,
    flags: &'static str,
    arity: i32,
    summary: &'static str,
    complexity: &'static str,
    args: &'static [Arg],
) -> CommandSpec {
    CommandSpec {
        name,
        handler,
        flags,
        arity,
        keys: Keys::First,
        access: Access::Read,
        summary,
        complexity,
        since: FIRST,
        args,
    }
}

pub const GET: CommandSpec = looking(
    "DQ.GET",
    look::get,
    "readonly fast",
    3,
    "Shows all that is known of a message.",
    "O(1)",
    &[Arg::key(), Arg::text("id")],
);

pub const LIST: CommandSpec = looking(
    "DQ.LIST",
    look::list,
    "readonly",
    -3,
    "Lists the messages of one state, step by step.",
    "O(log N + COUNT) for each step, with N messages in the queue",
    &[
        Arg::key(),
        STATE,
        CURSOR,
        COUNT,
        GROUP,
        TYPE,
        Arg::word("ids", "IDS").optional(),
    ],
);

pub const PEEK: CommandSpec = looking(
    "DQ.PEEK",
    look::peek,
    "readonly",
    -2,
    "Shows the messages that FETCH would return next.",
    "O(COUNT log N) with N messages in the queue",
    &[Arg::key(), COUNT],
);

pub const LEN: CommandSpec = CommandSpec {
    access: Access::Measure,
    ..looking(
        "DQ.LEN",
        look::len,
        "readonly fast",
        -2,
        "Counts the messages that are pending or running, or those of one state.",
        "O(1)",
        &[Arg::key(), STATE.optional()],
    )
};

pub const INFO: CommandSpec = looking(
    "DQ.INFO",
    info::info,
    "readonly",
    2,
    "Shows the counts, options and statistics of a queue.",
    "O(1)",
    &[Arg::key()],
);

pub const GROUPS: CommandSpec = looking(
    "DQ.GROUPS",
    look::groups,
    "readonly",
    -2,
    "Lists the groups of a queue, step by step.",
    "O(log G + COUNT) for each step, with G groups",
    &[
        Arg::key(),
        CURSOR,
        COUNT,
        Arg::one_of(
            "state",
            &[
                Arg::word("ready", "READY"),
                Arg::word("running", "RUNNING"),
                Arg::word("blocked", "BLOCKED"),
                Arg::word("paused", "PAUSED"),
            ],
        )
        .after("STATE")
        .optional(),
    ],
);

pub const CONSUMERS: CommandSpec = looking(
    "DQ.CONSUMERS",
    look::consumers,
    "readonly",
    2,
    "Lists the consumers of a queue.",
    "O(C) with C consumers",
    &[Arg::key()],
);

pub const EXPLAIN: CommandSpec = looking(
    "DQ.EXPLAIN",
    look::explain,
    "readonly",
    3,
    "Says why a message is not being delivered now.",
    "O(log N) with N messages in the queue",
    &[Arg::key(), Arg::text("id")],
);

pub const WAIT: CommandSpec = looking(
    "DQ.WAIT",
    wait::wait,
    "readonly blocking",
    4,
    "Waits until a message has ended.",
    "O(1)",
    &[Arg::key(), Arg::text("id"), Arg::integer("ms")],
);

pub const SCHEDULES: CommandSpec = looking(
    "DQ.SCHEDULES",
    look::schedules,
    "readonly",
    2,
    "Lists the schedules of a queue.",
    "O(S) with S schedules",
    &[Arg::key()],
);
