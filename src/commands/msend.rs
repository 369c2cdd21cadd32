//! DQ.MSEND: adds several messages. Replies with their ids, in the order of the payloads.

use super::message_options::with_message_options;
use super::parents::{check_parent, key_of_parent};
use super::send::{id, sent};
use crate::redis::spec::{Access, Arg, CommandSpec, Keys, Positions};
use crate::redis::{Args, CommandResult, Context};
use crate::server::commit::{self, Missing};
use crate::server::config::MAX_PAYLOAD;
use dq_queue::args::{self, Scope, Words};
use dq_queue::op::{Op, Sent};

pub(super) const SPEC: CommandSpec = CommandSpec {
    name: "DQ.MSEND",
    handler: run,
    flags: "write deny-oom getkeys-api",
    keys: Keys::FirstAnd(parent),
    access: Access::Insert,
    summary: "Adds several messages with the same options, all or none.",
    complexity: "O(M log N) with M messages added to N in the queue",
    args: &with_message_options::<25>(
        &[
            Arg::key(),
            Arg::integer("numpayloads"),
            Arg::text("payload").multiple(),
        ],
        Scope::MSEND,
        &[],
    ),
};

fn parent(words: &[&[u8]]) -> Positions {
    key_of_parent(words, |words| args::send::multi(words, u64::MAX))
}

fn run(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let key = args.key()?;
    let words = args.after_key();
    let send = args::send::multi(Words::new(&words), MAX_PAYLOAD.unsigned())?;
    check_parent(ctx, key, &send)?;
    let op = Op::Send(send);
    commit::run(ctx, key, &op, Missing::Create, |reply, outcome| {
        let Some((queue, all)) = sent(outcome) else {
            return reply.null_array();
        };
        if all.first() == Some(&Sent::NoGroup) {
            return reply.null_array();
        }
        reply.array(all.len());
        for one in all {
            match one {
                Sent::Added(seq) | Sent::Waits(seq) => id(reply, queue, &op, *seq),
                _ => reply.null(),
            }
        }
    })
}
