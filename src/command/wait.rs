//! DQ.WAIT.

use crate::command::parse::{self, look, Words};
use crate::core::state::State;
use crate::core::Queue;
use crate::ffi::blocking::{self, Wait};
use crate::ffi::{Args, CommandResult, Context, Name, Reply};
use crate::runtime::waiters::{self, Outcome};

/// Waits until a message has ended.
pub fn wait(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let key = parse::key(args)?;
    let request = look::wait(Words::after_key(args))?;
    let mut opened = ctx.open_write(key)?;
    let (here, queue) = opened.split();
    let seq = queue.as_ref().and_then(|queue| queue.find(request.id));
    let (Some(queue), Some(seq)) = (queue, seq) else {
        here.reply().null();
        return Ok(());
    };
    if let Some((state, text)) = ended(queue, seq) {
        write_end(here.reply(), state, text);
        return Ok(());
    }
    if here.deny_blocking() {
        here.reply().null();
        return Ok(());
    }
    queue.watch(request.id);
    drop(opened);
    let outcome = Outcome::default();
    let waiter = EndWaiter {
        outcome: outcome.clone(),
    };
    match blocking::block(ctx, &[key], request.ms, waiter) {
        Ok(handle) => {
            waiters::wait_for_end(ctx.db(), key.bytes(), request.id, outcome, handle);
        }
        Err(_) => ctx.reply().null(),
    }
    Ok(())
}

/// How a message has ended, if it has.
fn ended(queue: &Queue, seq: u64) -> Option<(State, Option<&[u8]>)> {
    let message = queue.message(seq)?;
    if !message.place.is_ended() {
        return None;
    }
    let state = queue.view(seq, queue.last_seen())?.state;
    let notes = message.notes();
    let text = match state {
        State::Finished => notes.and_then(|notes| notes.result.as_deref()),
        State::Dead => notes.and_then(|notes| notes.error.as_deref()),
        State::Cancelled => None,
        _ => return None,
    };
    Some((state, text))
}

fn write_end(reply: Reply<'_>, state: State, text: Option<&[u8]>) {
    reply.array(2);
    reply.bulk(state.name().as_bytes());
    match text {
        Some(text) => reply.bulk(text),
        None => reply.null(),
    }
}

/// A client that waits for a message's end. It is let go by its handle, not by
/// signals of the key.
struct EndWaiter {
    outcome: Outcome,
}

impl Wait for EndWaiter {
    fn ready(&self, _: &mut Context, _: Name<'_>) -> bool {
        false
    }

    fn timed_out(&self, reply: Reply<'_>) {
        match &*self.outcome.borrow() {
            Some((state, text)) => write_end(reply, *state, text.as_deref()),
            None => reply.null(),
        }
    }
}
