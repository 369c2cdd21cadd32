//! DQ.WAIT.

use std::rc::Rc;

use crate::command::write;
use crate::ffi::blocking::{self, Wait};
use crate::ffi::{Args, CommandResult, Context, Name, Reply};
use crate::runtime::{endings, wake};
use dq_queue::args::{look, Words};

/// Waits until a message has ended.
pub fn wait(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let key = args.key()?;
    let words = args.after_key();
    let request = look::wait(Words::new(&words))?;
    let mut opened = ctx.open_write(key)?;
    let (here, queue) = opened.split();
    let seq = queue.as_ref().and_then(|queue| queue.find(request.id));
    let (Some(queue), Some(seq)) = (queue, seq) else {
        here.reply().null();
        return Ok(());
    };
    if let Some((state, text)) = queue.ended(seq) {
        write::ending(here.reply(), state, text);
        return Ok(());
    }
    if here.deny_blocking() {
        here.reply().null();
        return Ok(());
    }
    queue.watch(request.id);
    drop(opened);
    match blocking::block(ctx, &[key], request.ms, Rc::new(EndWaiter)) {
        Some(handle) => {
            endings::wait(ctx.db(), key.bytes(), request.id, handle);
            wake::ensure_deadlines(ctx);
        }
        None => ctx.reply().null(),
    }
    Ok(())
}

/// A client that waits for a message's end: `endings.rs` answers it.
struct EndWaiter;

impl Wait for EndWaiter {
    fn appeared(&self, _: &Context, _: Name<'_>) {}

    fn timed_out(&self, reply: Reply<'_>) {
        reply.null();
    }

    fn gone(&self) {}
}
