//! DQ.WAIT: waits until a message has ended.

use crate::redis::spec::{Access, Arg, CommandSpec, Keys};
use crate::redis::{Args, CommandResult, Context};
use crate::server::{blocked_wait, message_reply};
use dq_queue::args::{self, Words};

pub(super) const SPEC: CommandSpec = CommandSpec {
    name: "DQ.WAIT",
    handler: run,
    flags: "readonly blocking",
    keys: Keys::First,
    access: Access::Read,
    summary: "Waits until a message has ended.",
    complexity: "O(1)",
    args: &[Arg::key(), Arg::text("id"), Arg::integer("ms")],
};

fn run(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let key = args.key()?;
    let words = args.after_key();
    let request = args::wait::wait(Words::new(&words))?;
    let mut opened = ctx.open_write(key)?;
    let (here, queue) = opened.split();
    let seq = queue.as_ref().and_then(|queue| queue.find(request.id));
    let (Some(queue), Some(seq)) = (queue, seq) else {
        here.reply().null();
        return Ok(());
    };
    if let Some((state, text)) = queue.ended(seq) {
        message_reply::ending(here.reply(), state, text);
        return Ok(());
    }
    if here.deny_blocking() {
        here.reply().null();
        return Ok(());
    }
    queue.watch(request.id);
    drop(opened);
    blocked_wait::block(ctx, key, request.id, request.ms);
    Ok(())
}
