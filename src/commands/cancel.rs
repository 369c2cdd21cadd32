//! DQ.CANCEL: cancels messages. Replies with the state that each message was in, or null.

use crate::redis::spec::{Access, Arg, CommandSpec, Keys};
use crate::redis::{Args, CommandResult, Context};
use crate::server::commit::{self, Missing};
use dq_queue::args::{self, Words};
use dq_queue::Done;

pub(super) const SPEC: CommandSpec = CommandSpec {
    name: "DQ.CANCEL",
    handler: run,
    flags: "write fast",
    keys: Keys::First,
    access: Access::Delete,
    summary: "Cancels messages and says which state each was in.",
    complexity: "O(M log N) with M ids and N messages in the queue",
    args: &[Arg::key(), Arg::text("id").multiple()],
};

fn run(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let words = args.after_key();
    let named = words.len();
    let op = args::cancel::cancel(Words::new(&words))?;
    commit::run(ctx, args.key()?, &op, Missing::Nothing, |reply, outcome| {
        reply.array(named);
        match outcome {
            Some((_, Done::States(states))) => {
                for state in states {
                    reply.value(state.map(|state| state.name()));
                }
            }
            _ => (0..named).for_each(|_| reply.null()),
        }
    })
}
