//! DQ.SEND: adds a message. Replies with its id, or with null if the id is taken.

use super::message_options::with_message_options;
use super::parents::{check_parent, key_of_parent};
use crate::redis::spec::{Access, Arg, CommandSpec, Keys, Positions};
use crate::redis::{Args, CommandResult, Context, Reply};
use crate::server::commit::{self, Form, Missing};
use crate::server::config::MAX_PAYLOAD;
use crate::server::replay;
use dq_queue::args::{self, Scope, Words};
use dq_queue::op::{Op, Send, Sent};
use dq_queue::{Done, Queue, Seq};

pub(super) const SPEC: CommandSpec = CommandSpec {
    name: "DQ.SEND",
    handler: run,
    flags: "write deny-oom fast getkeys-api",
    keys: Keys::FirstAnd(parent),
    access: Access::Insert,
    summary: "Adds a message, due now or later.",
    complexity: "O(log N) with N messages in the queue",
    args: &with_message_options::<29>(&[Arg::key(), Arg::text("payload")], Scope::SEND, &[]),
};

fn parent(words: &[&[u8]]) -> Positions {
    key_of_parent(words, |words| args::send::send(words, u64::MAX))
}

fn run(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let key = args.key()?;
    let words = args.after_key();
    if ctx.is_replay() {
        // The server that accepted the message has checked its size, so it is not checked again.
        let send = args::send::send(Words::new(&words), u64::MAX)?;
        return replay::command(ctx, key, &Op::Send(send));
    }
    let words = Words::new(&words);
    let op = Op::Send(args::send::send(words, MAX_PAYLOAD.unsigned())?);
    if let Op::Send(send) = &op {
        check_parent(ctx, key, send)?;
    }
    let form = Form::Verbatim;
    commit::run_in_form(
        ctx,
        key,
        &op,
        Missing::Create,
        form,
        |reply, outcome| match sent(outcome) {
            Some((queue, [one])) => id_of(reply, queue, &op, *one),
            _ => reply.null(),
        },
    )
}

/// The queue, and for each message of a SEND whether it was added.
pub(super) fn sent<'a>(outcome: Option<(&'a Queue, &'a Done)>) -> Option<(&'a Queue, &'a [Sent])> {
    match outcome {
        Some((queue, Done::Sent(sent))) => Some((queue, sent)),
        _ => None,
    }
}

/// Writes the id of the message that `op` has added or that it repeats, else null.
pub(super) fn id_of(reply: Reply<'_>, queue: &Queue, op: &Op<'_>, sent: Sent) {
    match (sent, op) {
        (Sent::Added(seq) | Sent::Waits(seq), _) => id(reply, queue, op, seq),
        (Sent::Duplicate, Op::Send(send)) => match queue.repeated(send) {
            Some(first) => reply.bulk(first),
            None => reply.null(),
        },
        _ => reply.null(),
    }
}

/// Writes the id of a message that `op` has added. This does not look the message up.
pub(super) fn id(reply: Reply<'_>, queue: &Queue, op: &Op<'_>, seq: Seq) {
    match op {
        Op::Send(Send { id: Some(id), .. }) => reply.bulk(id),
        _ => reply.bulk(&queue.new_id(seq)),
    }
}
