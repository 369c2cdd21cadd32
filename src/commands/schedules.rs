//! DQ.SCHEDULES: lists the schedules of a queue.

use super::inspect::inspect;
use super::FIRST;
use crate::redis::spec::{Access, Arg, CommandSpec, Keys};
use crate::redis::{Args, CommandResult, Context, Reply};
use crate::server::message_reply::{field, time};
use dq_queue::schedule::Schedule;

/// The description of the command, for the server and for COMMAND DOCS.
pub const SPEC: CommandSpec = CommandSpec {
    name: "DQ.SCHEDULES",
    handler: run,
    flags: "readonly",
    arity: 2,
    keys: Keys::First,
    access: Access::Read,
    summary: "Lists the schedules of a queue.",
    complexity: "O(S) with S schedules",
    since: FIRST,
    args: &[Arg::key()],
};

fn run(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let key = args.key()?;
    inspect(ctx, key, |reply, queue| {
        let Some((queue, _)) = queue else {
            return reply.array(0);
        };
        let schedules = queue.schedules();
        reply.array(schedules.len());
        for (name, schedule) in schedules {
            write_schedule(reply, name, schedule);
        }
    })
}

fn write_schedule(reply: Reply<'_>, name: &[u8], schedule: &Schedule) {
    reply.map(5);
    field(reply, "name");
    reply.bulk(name);
    field(reply, "definition");
    reply.bulk(schedule.rule.definition().as_bytes());
    field(reply, "next-at");
    time(reply, schedule.next_at);
    field(reply, "last-at");
    time(reply, schedule.last_at);
    field(reply, "fired");
    reply.unsigned(schedule.fired);
}
