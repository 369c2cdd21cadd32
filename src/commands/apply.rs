//! Describes APPLY and IF, the options of commands that acknowledge a message.

use crate::redis::spec::Arg;

/// `APPLY n effect [effect ...]`
pub const APPLY: Arg = Arg::block(
    "apply",
    &[
        Arg::integer("numeffects"),
        Arg::one_of(
            "effect",
            &[
                Arg::block(
                    "set",
                    &[KEY, VALUE, Arg::integer("px").after("PX").optional()],
                )
                .after("SET"),
                KEY.after("DEL"),
                Arg::block("incrby", &[KEY, NUMBER]).after("INCRBY"),
                Arg::block("hset", &[KEY, FIELD, VALUE]).after("HSET"),
                Arg::block("hdel", &[KEY, FIELD]).after("HDEL"),
                Arg::block("hincrby", &[KEY, FIELD, NUMBER]).after("HINCRBY"),
                Arg::block("sadd", &[KEY, MEMBER]).after("SADD"),
                Arg::block("srem", &[KEY, MEMBER]).after("SREM"),
                Arg::block("zadd", &[KEY, SCORE, MEMBER]).after("ZADD"),
                Arg::block("zincrby", &[KEY, SCORE, MEMBER]).after("ZINCRBY"),
                Arg::block("zrem", &[KEY, MEMBER]).after("ZREM"),
                Arg::block("lpush", &[KEY, VALUE]).after("LPUSH"),
                Arg::block("rpush", &[KEY, VALUE]).after("RPUSH"),
                Arg::block(
                    "xadd",
                    &[
                        KEY,
                        Arg::integer("numfields"),
                        Arg::block("entry", &[FIELD, VALUE]).multiple(),
                        Arg::integer("maxlen").after("MAXLEN").optional(),
                    ],
                )
                .after("XADD"),
                Arg::block("pexpire", &[KEY, NUMBER]).after("PEXPIRE"),
            ],
        )
        .multiple(),
    ],
)
.after("APPLY")
.optional();

/// `IF m condition [condition ...]`
pub const IF: Arg = Arg::block(
    "if",
    &[
        Arg::integer("numconditions"),
        Arg::one_of(
            "condition",
            &[
                KEY.after("EXISTS"),
                KEY.after("MISSING"),
                Arg::block("equals", &[KEY, VALUE]).after("EQUALS"),
            ],
        )
        .multiple(),
    ],
)
.after("IF")
.optional();

const KEY: Arg = Arg::key_of("target");
const VALUE: Arg = Arg::text("value");
const FIELD: Arg = Arg::text("field");
const MEMBER: Arg = Arg::text("member");
const NUMBER: Arg = Arg::integer("increment");
const SCORE: Arg = Arg::double("score");
