//! DQ.GET: shows all fields of a message.

use super::inspect::inspect;
use crate::redis::spec::{Access, Arg, CommandSpec, Keys};
use crate::redis::{Args, CommandResult, Context};
use crate::server::message_reply;
use dq_queue::args::{self, Words};

pub(super) const SPEC: CommandSpec = CommandSpec {
    name: "DQ.GET",
    handler: run,
    flags: "readonly fast",
    keys: Keys::First,
    access: Access::Read,
    summary: "Shows all that is known of a message.",
    complexity: "O(1)",
    args: &[Arg::key(), Arg::text("id")],
};

fn run(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let key = args.key()?;
    let words = args.after_key();
    let id = args::get::message(Words::new(&words))?;
    inspect(ctx, key, |reply, queue| {
        let view = queue.and_then(|(queue, now)| queue.view(queue.find(id)?, now));
        match view {
            Some(view) => message_reply::message(reply, &view),
            None => reply.null(),
        }
    })
}
