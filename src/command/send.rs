//! DQ.SEND, DQ.MSEND and DQ.GROUPPUSH.

use super::apply;
use super::execute::{self, Form, Missing};
use crate::config::MAX_PAYLOAD;
use crate::ffi::{Args, CommandResult, Context, Reply};
use dq_queue::args::{self, Words};
use dq_queue::op::{Op, Send, Sent};
use dq_queue::{Done, Queue, Seq};

/// `DQ.SEND`: the id, or null where it is taken.
pub fn send(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let key = args.key()?;
    if ctx.is_replay() {
        // Whatever its size, it was accepted where it was sent.
        let words = args.after_key();
        let send = args::send::send(Words::new(&words), u64::MAX)?;
        return apply::repeat_command(ctx, key, &Op::Send(send));
    }
    let words = args.after_key();
    let send = args::send::send(Words::new(&words), MAX_PAYLOAD.unsigned())?;
    let op = Op::Send(send);
    execute::run_in_form(
        ctx,
        key,
        &op,
        Missing::Create,
        Form::Command,
        |reply, outcome| match sent(outcome) {
            Some((queue, [Sent::Added(seq)])) => id(reply, queue, &op, *seq),
            _ => reply.null(),
        },
    )
}

/// `DQ.MSEND`: the ids, in the order of the payloads.
pub fn multi(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let key = args.key()?;
    let words = args.after_key();
    let send = args::send::multi(Words::new(&words), MAX_PAYLOAD.unsigned())?;
    let op = Op::Send(send);
    execute::run(ctx, key, &op, Missing::Create, |reply, outcome| {
        let Some((queue, all)) = sent(outcome) else {
            return reply.array(0);
        };
        reply.array(all.len());
        for one in all {
            match one {
                Sent::Added(seq) => id(reply, queue, &op, *seq),
                Sent::Taken => reply.null(),
            }
        }
    })
}

/// `DQ.GROUPPUSH`: the group and the id, or null where the id is taken.
pub fn group_push(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let key = args.key()?;
    let words = args.after_key();
    let send = args::group_push::group_push(Words::new(&words), MAX_PAYLOAD.unsigned())?;
    let group = send.group.clone().unwrap_or_default();
    let op = Op::Send(send);
    execute::run(
        ctx,
        key,
        &op,
        Missing::Create,
        |reply, outcome| match sent(outcome) {
            Some((queue, [Sent::Added(seq)])) => {
                reply.array(2);
                reply.bulk(&group);
                id(reply, queue, &op, *seq);
            }
            _ => reply.null_array(),
        },
    )
}

fn sent<'a>(outcome: Option<(&'a Queue, &'a Done)>) -> Option<(&'a Queue, &'a [Sent])> {
    match outcome {
        Some((queue, Done::Sent(sent))) => Some((queue, sent)),
        _ => None,
    }
}

/// The id of a message that this has sent: the message itself is not looked up.
fn id(reply: Reply<'_>, queue: &Queue, op: &Op<'_>, seq: Seq) {
    match op {
        Op::Send(Send { id: Some(id), .. }) => reply.bulk(id),
        _ => reply.bulk(&queue.new_id(seq)),
    }
}
