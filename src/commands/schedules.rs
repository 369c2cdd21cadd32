//! DQ.SCHEDULES: lists the schedules of a queue, or pauses one of them or resumes it. The reply to
//! that is 1, or 0 if there is none with that name.

use super::inspect::inspect;
use crate::redis::spec::{Access, Arg, CommandSpec, Keys};
use crate::redis::{Args, CommandResult, Context, Name, Reply};
use crate::server::commit::{self, Missing};
use crate::server::{replies, rights};
use dq_queue::args::{self, Words};
use dq_queue::op::Op;
use dq_queue::schedule::Schedule;

/// The description of the command, for the server and for COMMAND DOCS.
///
/// A listing must work on a replica and for a user who may only read, so for the server this is a
/// command that reads. [`change`] itself makes the checks of the server before a command that
/// writes. It cannot check that a script has promised not to write: only the server knows that. It
/// refuses all that may replicate in such a script, a listing as well, as it does for PFCOUNT.
pub(super) const SPEC: CommandSpec = CommandSpec {
    name: "DQ.SCHEDULES",
    handler: run,
    flags: "readonly may-replicate",
    keys: Keys::First,
    access: Access::Read,
    summary: "Lists the schedules of a queue, or pauses or resumes one of them.",
    complexity: "O(S) with S schedules, O(log S) with PAUSE or RESUME",
    args: &[
        Arg::key(),
        Arg::one_of(
            "change",
            &[
                Arg::text("name").after("PAUSE"),
                Arg::text("name").after("RESUME"),
            ],
        )
        .optional(),
    ],
};

fn run(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let key = args.key()?;
    let words = args.after_key();
    if let Some(op) = args::schedule::schedules(Words::new(&words))? {
        return change(ctx, key, args.name(3), &op);
    }
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

/// Pauses or resumes a schedule, if the server would run a command that writes.
fn change(ctx: &mut Context, key: Name<'_>, name: Option<Name<'_>>, op: &Op<'_>) -> CommandResult {
    if !name.is_some_and(|name| rights::may_unschedule(ctx, key, name)) {
        return Err("NOPERM PAUSE and RESUME need the rights for DQ.UNSCHEDULE of this key".into());
    }
    if ctx.is_read_only() {
        return Err("READONLY You can't write against a read only replica.".into());
    }
    if ctx.is_primary() && !ctx.may_act() {
        return Err("TRYAGAIN the server takes no writes now".into());
    }
    commit::run(ctx, key, op, Missing::Nothing, replies::flag)
}

fn write_schedule(reply: Reply<'_>, name: &[u8], schedule: &Schedule) {
    let extras = schedule.extras();
    reply.map(10);
    reply.field("name", name);
    reply.field("definition", schedule.rule.definition().as_bytes());
    reply.field("next-at", schedule.next_at);
    reply.field("last-at", schedule.last_at);
    reply.field("fired", schedule.fired.get());
    reply.field("until", extras.limits.until);
    reply.field("times", extras.limits.times);
    reply.field("jitter", extras.limits.jitter);
    reply.field("paused", extras.paused.is_some());
    reply.field("skipped", extras.skipped.get());
}
