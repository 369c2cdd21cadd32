//! Descriptions of options that several commands share.

use crate::redis::spec::Arg;

const BACKOFF_KINDS: &[Arg] = &[
    Arg::word("fixed", "FIXED"),
    Arg::word("linear", "LINEAR"),
    Arg::word("exp", "EXP"),
];

/// `BACKOFF kind ms`
pub const BACKOFF: Arg = Arg::block(
    "backoff",
    &[Arg::one_of("kind", BACKOFF_KINDS), Arg::integer("ms")],
)
.after("BACKOFF")
.optional();

/// `RATE n PER ms`
pub const RATE: Arg = Arg::block(
    "rate",
    &[
        Arg::integer("count"),
        Arg::integer("window").after("PER").optional(),
    ],
)
.after("RATE")
.optional();

/// `BREAKER n PER ms OPEN ms [MAX ms]`
pub const BREAKER: Arg = Arg::block(
    "breaker",
    &[
        Arg::integer("failures"),
        Arg::integer("window").after("PER").optional(),
        Arg::integer("open").after("OPEN").optional(),
        Arg::integer("max").after("MAX").optional(),
    ],
)
.after("BREAKER")
.optional();

/// `MAXTIMEOUTS n`
pub const MAX_TIMEOUTS: Arg = Arg::integer("maxtimeouts").after("MAXTIMEOUTS").optional();
/// `ERRORS n`
pub const ERRORS: Arg = Arg::integer("errors").after("ERRORS").optional();
/// `DEADTO key [reason ...]`
pub const DEAD_TO: Arg = Arg::block(
    "deadto",
    &[
        Arg::key(),
        Arg::one_of(
            "reason",
            &[
                Arg::word("retries", "RETRIES"),
                Arg::word("rejected", "REJECTED"),
                Arg::word("expired", "EXPIRED"),
                Arg::word("batch", "BATCH"),
                Arg::word("timeouts", "TIMEOUTS"),
                Arg::word("children", "CHILDREN"),
            ],
        )
        .multiple()
        .optional(),
    ],
)
.after("DEADTO")
.optional();
/// `EVENTS stream`
pub const EVENTS: Arg = Arg::key_of("stream").after("EVENTS").optional();
/// `FAIR COUNT | TIME | COST`
pub const FAIR: Arg = Arg::one_of(
    "fair",
    &[
        Arg::word("count", "COUNT"),
        Arg::word("time", "TIME"),
        Arg::word("cost", "COST"),
    ],
)
.after("FAIR")
.optional();
/// `COMPRESS ON | OFF`
pub const COMPRESS: Arg = Arg::one_of(
    "compress",
    &[Arg::word("on", "ON"), Arg::word("off", "OFF")],
)
.after("COMPRESS")
.optional();
/// `SENDS ON | OFF`
pub const SENDS: Arg = Arg::one_of("sends", &[Arg::word("on", "ON"), Arg::word("off", "OFF")])
    .after("SENDS")
    .optional();

/// `DELAY ms | AT unix-ms`
pub const DUE: Arg = Arg::one_of(
    "due",
    &[
        Arg::integer("delay").after("DELAY"),
        Arg::time("at").after("AT"),
    ],
);

/// `COUNT n`
pub const COUNT: Arg = Arg::integer("count").after("COUNT").optional();
/// `CURSOR c`
pub const CURSOR: Arg = Arg::text("cursor").after("CURSOR").optional();
/// `GROUP g`
pub const GROUP: Arg = Arg::text("group").after("GROUP").optional();
/// `LEASE ms`
pub const LEASE: Arg = Arg::integer("lease").after("LEASE").optional();
/// `ID id`
pub const ID: Arg = Arg::text("id").after("ID").optional();
/// `RETRIES n`
pub const RETRIES: Arg = Arg::integer("retries").after("RETRIES").optional();
/// `TTL ms`
pub const TTL: Arg = Arg::integer("ttl").after("TTL").optional();
/// `TYPE t`
pub const TYPE: Arg = Arg::text("type").after("TYPE").optional();
/// `BATCH b`
pub const BATCH: Arg = Arg::text("batch").after("BATCH").optional();
/// `BLOCK ms`
pub const BLOCK: Arg = Arg::integer("block").after("BLOCK").optional();
/// `CONSUMER c`
pub const CONSUMER: Arg = Arg::text("consumer").after("CONSUMER").optional();
/// `PERGROUP n`
pub const PER_GROUP: Arg = Arg::integer("pergroup").after("PERGROUP").optional();
/// `MAXBYTES n`
pub const MAX_BYTES: Arg = Arg::integer("maxbytes").after("MAXBYTES").optional();
/// `BIND`
pub const BIND: Arg = Arg::word("bind", "BIND").optional();
/// `GRACE ms`
pub const GRACE: Arg = Arg::integer("grace").after("GRACE").optional();
/// `TOKEN t`
pub const TOKEN: Arg = Arg::text("token").after("TOKEN").optional();
/// `NOACK`
pub const NO_ACK: Arg = Arg::word("noack", "NOACK").optional();
/// `WITHMETA`
pub const WITH_META: Arg = Arg::word("withmeta", "WITHMETA").optional();
/// `IDS`
pub const IDS: Arg = Arg::word("ids", "IDS").optional();
/// `REV`
pub const REVERSE: Arg = Arg::word("rev", "REV").optional();
/// `NOTE text`
pub const NOTE: Arg = Arg::text("note").after("NOTE").optional();
/// The state of a message.
pub const STATE: Arg = Arg::one_of(
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
        Arg::word("held", "HELD"),
    ],
);
