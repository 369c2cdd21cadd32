//! DQ.SCHEDULE: has the server send a message repeatedly. Replies with the next fire time.

use super::message_options::with_message_options;
use crate::redis::spec::{Access, Arg, CommandSpec, Keys};
use crate::redis::{Args, CommandResult, Context, Failure, Name};
use crate::server::clock;
use crate::server::commit::{self, has_small_lead, Missing};
use crate::server::config::MAX_PAYLOAD;
use dq_queue::args::{self, Scope, Words};
use dq_queue::op::Op;
use dq_queue::{Done, Millis};

pub(super) const SPEC: CommandSpec = CommandSpec {
    name: "DQ.SCHEDULE",
    handler: run,
    flags: "write deny-oom",
    keys: Keys::First,
    access: Access::Insert,
    summary: "Has the server send a message again and again by a rule.",
    complexity: "O(log S) with S schedules",
    args: &with_message_options::<27>(
        &[
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
        ],
        Scope::SCHEDULE,
        &[
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
            Arg::time("until").after("UNTIL").optional(),
            Arg::integer("times").after("TIMES").optional(),
            Arg::integer("jitter").after("JITTER").optional(),
        ],
    ),
};

fn run(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let key = args.key()?;
    let words = args.after_key();
    let request = args::schedule::schedule(Words::new(&words), MAX_PAYLOAD.unsigned())?;
    let op = Op::Schedule(request.at(queue_time(ctx, key)?)?);
    commit::run(
        ctx,
        key,
        &op,
        Missing::Create,
        |reply, outcome| match outcome {
            Some((_, Done::NextFire(at))) => reply.unsigned(*at),
            _ => reply.null(),
        },
    )
}

/// The time of a queue in Unix milliseconds, at which an EVERY without START begins. A queue with
/// CLOCK MANUAL has its own clock.
fn queue_time(ctx: &mut Context, key: Name<'_>) -> Result<Millis, Failure> {
    let moment = clock::now();
    let key = ctx.open_read(key)?;
    let queue = key.get().filter(|queue| has_small_lead(queue, moment));
    Ok(queue.map_or(moment.ms(), |queue| queue.time(moment)))
}
