//! DQ.GROUPPUSH: adds a JSON object to the group that its fields name. Replies with the group and
//! the id, or with null if the id is taken.

use super::message_options::with_message_options;
use super::parents::{check_parent, key_of_parent};
use super::send::{id_of, sent};
use crate::redis::spec::{Access, Arg, CommandSpec, Keys, Positions};
use crate::redis::{Args, CommandResult, Context};
use crate::server::commit::{self, Missing};
use crate::server::config::MAX_PAYLOAD;
use crate::server::errors;
use dq_queue::args::grouppush::GroupPush;
use dq_queue::args::{self, Scope, Words};
use dq_queue::op::{self, DueTime, Op, Sent};
use dq_queue::settings::Clock;
use dq_queue::Queue;

pub(super) const SPEC: CommandSpec = CommandSpec {
    name: "DQ.GROUPPUSH",
    handler: run,
    flags: "write deny-oom getkeys-api",
    keys: Keys::FirstAnd(parent),
    access: Access::Insert,
    summary: "Adds a JSON object as a message, its group read from its fields.",
    complexity: "O(L + log N) with a payload of L bytes and N messages in the queue",
    args: &with_message_options::<32>(
        &[
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
        ],
        Scope::GROUP_PUSH,
        &[],
    ),
};

fn parent(words: &[&[u8]]) -> Positions {
    key_of_parent(words, |words| {
        args::grouppush::group_push(words, u64::MAX).map(|push| push.send)
    })
}

fn run(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let key = args.key()?;
    let words = args.after_key();
    let GroupPush { send, has_at_path } =
        args::grouppush::group_push(Words::new(&words), MAX_PAYLOAD.unsigned())?;
    check_parent(ctx, key, &send)?;
    if let (DueTime::At(at), true) = (send.due, has_at_path) {
        // Every SEND is checked for this, but by the name of AT.
        let opened = ctx.open_read(key)?;
        let clock = opened.get().map_or(Clock::Server, Queue::clock);
        op::check_time(clock, "ATPATH", Some(at)).map_err(|error| errors::reply_for(&error))?;
    }
    let group = send.group.clone().unwrap_or_default();
    let op = Op::Send(send);
    commit::run(
        ctx,
        key,
        &op,
        Missing::Create,
        |reply, outcome| match sent(outcome) {
            Some((queue, [one @ (Sent::Added(_) | Sent::Waits(_) | Sent::Duplicate)])) => {
                reply.array(2);
                reply.bulk(&group);
                id_of(reply, queue, &op, *one);
            }
            _ => reply.null_array(),
        },
    )
}
