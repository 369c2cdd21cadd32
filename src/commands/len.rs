//! DQ.LEN: counts messages.

use super::inspect::inspect;
use super::options::STATE;
use crate::redis::spec::{Access, Arg, CommandSpec, Keys};
use crate::redis::{Args, CommandResult, Context};
use dq_queue::args::{self, Words};

pub(super) const SPEC: CommandSpec = CommandSpec {
    name: "DQ.LEN",
    handler: run,
    flags: "readonly fast",
    keys: Keys::First,
    access: Access::Measure,
    summary: "Counts the messages that are pending or running, or those of one state.",
    complexity: "O(1)",
    args: &[Arg::key(), STATE.optional()],
};

fn run(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let key = args.key()?;
    let words = args.after_key();
    let state = args::len::len(Words::new(&words))?;
    inspect(ctx, key, |reply, queue| {
        let count = queue.map_or(0, |(queue, _)| match state {
            None => queue.live(),
            Some(state) => queue.count(state),
        });
        reply.unsigned(count);
    })
}
