//! What the commands share that only read.

use crate::redis::{Context, Failure, Name, Reply};
use crate::server::{clock, message_reply};
use dq_queue::{Millis, Queue, Seq};

/// Opens a queue for reading it at the present time. `read` gets `None` where there is none.
pub(super) fn inspect<R>(
    ctx: &mut Context,
    key: Name<'_>,
    read: impl FnOnce(Reply<'_>, Option<(&Queue, Millis)>) -> R,
) -> Result<R, Failure> {
    let moment = clock::now();
    let opened = ctx.open_read(key)?;
    let queue = opened.get().map(|queue| (queue, queue.now(moment)));
    Ok(read(opened.context().reply(), queue))
}

/// Writes a message, or its id.
pub(super) fn write_seq(reply: Reply<'_>, queue: &Queue, seq: Seq, now: Millis, id_only: bool) {
    match queue.view(seq, now) {
        Some(view) if id_only => reply.bulk(view.id.as_bytes()),
        Some(view) => message_reply::message(reply, &view),
        None => reply.null(),
    }
}

/// Begins a page of a listing: the next cursor, then the head of the array.
pub(super) fn write_page(reply: Reply<'_>, next: Option<impl ToString>, len: usize) {
    reply.array(2);
    match next {
        Some(next) => reply.bulk(next.to_string().as_bytes()),
        None => reply.bulk(b"0"),
    }
    reply.array(len);
}
