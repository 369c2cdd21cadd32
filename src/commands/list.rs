//! DQ.LIST: lists the messages of one state, page by page.

use super::inspect::{inspect, write_page, write_seq};
use super::options::{COUNT, CURSOR, GROUP, IDS, REVERSE, STATE, TYPE};
use crate::redis::spec::{Access, Arg, CommandSpec, Keys};
use crate::redis::{Args, CommandResult, Context};
use dq_queue::args::{self, Words};

pub(super) const SPEC: CommandSpec = CommandSpec {
    name: "DQ.LIST",
    handler: run,
    flags: "readonly",
    keys: Keys::First,
    access: Access::Read,
    summary: "Lists the messages of one state, step by step.",
    complexity: "O(log N + COUNT) for each step, with N messages in the queue",
    args: &[Arg::key(), STATE, CURSOR, COUNT, GROUP, TYPE, REVERSE, IDS],
};

fn run(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let key = args.key()?;
    let words = args.after_key();
    let request = args::list::list(Words::new(&words))?;
    inspect(ctx, key, |reply, queue| {
        let Some((queue, now)) = queue else {
            return write_page(reply, None::<u64>, 0);
        };
        let (next, seqs) = queue.list(request.listing, now);
        write_page(reply, next, seqs.len());
        for seq in seqs {
            write_seq(reply, queue, seq, now, request.ids);
        }
    })
}
