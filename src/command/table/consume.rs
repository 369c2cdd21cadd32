//! Taking messages, settling them, and time.

use super::options::{COUNT, GROUP, LEASE};
use super::FIRST;
use crate::command::spec::{Access, Arg, CommandSpec, Keys};
use crate::command::{fetch, settle, tick};

const BLOCK: Arg = Arg::integer("block").after("BLOCK").optional();
const CONSUMER: Arg = Arg::text("consumer").after("CONSUMER").optional();
const PER_GROUP: Arg = Arg::integer("pergroup").after("PERGROUP").optional();
const MAX_BYTES: Arg = Arg::integer("maxbytes").after("MAXBYTES").optional();
const BIND: Arg = Arg::word("bind", "BIND").optional();
const NO_ACK: Arg = Arg::word("noack", "NOACK").optional();
const WITH_META: Arg = Arg::word("withmeta", "WITHMETA").optional();

const ACKED: Arg = Arg::block(
    "ack",
    &[
        Arg::integer("numreceipts"),
        Arg::integer("receipt").multiple(),
    ],
)
.after("ACK")
.optional();

pub const FETCH: CommandSpec = CommandSpec {
    name: "DQ.FETCH",
    handler: fetch::fetch,
    flags: "write blocking",
    arity: -2,
    keys: Keys::First,
    access: Access::ReadUpdate,
    summary: "Takes messages that are due, under a lease, and waits for them if asked to.",
    complexity: "O(M log N) with M messages taken or acked and N in the queue",
    since: FIRST,
    args: &[
        Arg::key(),
        COUNT,
        BLOCK,
        LEASE,
        CONSUMER,
        GROUP,
        PER_GROUP,
        MAX_BYTES,
        ACKED,
        BIND,
        NO_ACK,
        WITH_META,
    ],
};

pub const MFETCH: CommandSpec = CommandSpec {
    name: "DQ.MFETCH",
    handler: fetch::fetch_of_many,
    flags: "write blocking getkeys-api",
    arity: -3,
    keys: Keys::Counted,
    access: Access::ReadUpdate,
    summary: "Takes messages of the first of several queues that has any.",
    complexity: "O(K + M log N) with K keys, M messages taken and N in their queue",
    since: FIRST,
    args: &[
        Arg::integer("numkeys"),
        Arg::key().multiple(),
        COUNT,
        BLOCK,
        LEASE,
        CONSUMER,
        PER_GROUP,
        MAX_BYTES,
        BIND,
        NO_ACK,
        WITH_META,
    ],
};

pub const ACK: CommandSpec = CommandSpec {
    name: "DQ.ACK",
    handler: settle::ack,
    flags: "write fast",
    arity: -3,
    keys: Keys::First,
    access: Access::Delete,
    summary: "Finishes messages by the receipts of their deliveries.",
    complexity: "O(M log N) with M receipts and N messages leased or kept",
    since: FIRST,
    args: &[
        Arg::key(),
        Arg::integer("receipt").multiple(),
        Arg::text("result").after("RESULT").optional(),
    ],
};

pub const NACK: CommandSpec = CommandSpec {
    name: "DQ.NACK",
    handler: settle::nack,
    flags: "write fast",
    arity: -3,
    keys: Keys::First,
    access: Access::Update,
    summary: "Gives messages back: failed, untouched, or never to be tried again.",
    complexity: "O(M log N) with M receipts and N messages in the queue",
    since: FIRST,
    args: &[
        Arg::key(),
        Arg::integer("receipt").multiple(),
        Arg::integer("delay").after("DELAY").optional(),
        Arg::text("error").after("ERROR").optional(),
        Arg::one_of(
            "kind",
            &[Arg::word("silent", "SILENT"), Arg::word("fatal", "FATAL")],
        )
        .optional(),
    ],
};

pub const TOUCH: CommandSpec = CommandSpec {
    name: "DQ.TOUCH",
    handler: settle::touch,
    flags: "write fast",
    arity: -4,
    keys: Keys::First,
    access: Access::Update,
    summary: "Sets how long from now leases last.",
    complexity: "O(M log N) with M receipts and N messages leased",
    since: FIRST,
    args: &[
        Arg::key(),
        Arg::integer("ms"),
        Arg::integer("receipt").multiple(),
    ],
};

pub const TICK: CommandSpec = CommandSpec {
    name: "DQ.TICK",
    handler: tick::tick,
    flags: "write getkeys-api no-mandatory-keys",
    arity: -1,
    keys: Keys::AllOrFirst,
    access: Access::Update,
    summary: "Does all that is due now, or moves the clock of a queue whose clock is manual.",
    complexity: "O(M log N) with M messages that fall due and N in the queues",
    since: FIRST,
    args: &[Arg::one_of(
        "what",
        &[
            Arg::block(
                "move",
                &[
                    Arg::key(),
                    Arg::one_of(
                        "clock",
                        &[
                            Arg::integer("ms").after("ADVANCE"),
                            Arg::time("time").after("TO"),
                        ],
                    ),
                ],
            ),
            Arg::key().multiple(),
        ],
    )
    .optional()],
};
