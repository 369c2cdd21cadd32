//! DQ.PEEK: shows the messages that FETCH would return next.

use super::inspect::{inspect, write_seq};
use super::options::COUNT;
use crate::redis::spec::{Access, Arg, CommandSpec, Keys};
use crate::redis::{Args, CommandResult, Context};
use dq_queue::args::{self, Words};

pub(super) const SPEC: CommandSpec = CommandSpec {
    name: "DQ.PEEK",
    handler: run,
    flags: "readonly",
    keys: Keys::First,
    access: Access::Read,
    summary: "Shows the messages that FETCH would return next.",
    complexity: "O(COUNT log N) with N messages in the queue",
    args: &[Arg::key(), COUNT],
};

fn run(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let key = args.key()?;
    let words = args.after_key();
    let count = args::peek::peek(Words::new(&words))?;
    inspect(ctx, key, |reply, queue| {
        let Some((queue, now)) = queue else {
            return reply.array(0);
        };
        let seqs = queue.peek(count, now);
        reply.array(seqs.len());
        for seq in seqs {
            write_seq(reply, queue, seq, now, false);
        }
    })
}
