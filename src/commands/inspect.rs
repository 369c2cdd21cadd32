//! Functions that the read-only commands share.

use crate::redis::{Context, Failure, Name, Reply};
use crate::server::commit::event_stream;
use crate::server::{clock, message_reply};
use dq_queue::{Millis, Queue, Seq};

/// Opens a key for reading, and runs `read` with its queue and the queue's time in milliseconds, or
/// with `None` if the key does not exist. Error: the key holds another type.
pub(super) fn inspect<R>(
    ctx: &mut Context,
    key: Name<'_>,
    read: impl FnOnce(Reply<'_>, Option<(&Queue, Millis)>) -> R,
) -> Result<R, Failure> {
    let moment = clock::now();
    let opened = ctx.open_read(key)?;
    let queue = opened.get().map(|queue| (queue, queue.time(moment)));
    Ok(read(opened.context().reply(), queue))
}

/// The reason why nothing can be added to the event stream of a queue, if there is one. Error: the
/// key holds another type.
pub(super) fn events_error(
    ctx: &mut Context,
    key: Name<'_>,
) -> Result<Option<&'static str>, Failure> {
    let opened = ctx.open_read(key)?;
    let events = opened
        .get()
        .and_then(|queue| queue.settings().events.clone());
    drop(opened);
    Ok(events.and_then(|stream| event_stream::error(ctx, key.bytes(), &stream)))
}

/// Writes a message, or with `id_only` only its id.
pub(super) fn write_seq(reply: Reply<'_>, queue: &Queue, seq: Seq, now: Millis, id_only: bool) {
    match queue.view(seq, now) {
        Some(view) if id_only => reply.bulk(view.id.as_bytes()),
        Some(view) => message_reply::message(reply, &view),
        None => reply.null(),
    }
}

/// Begins a page of a listing: writes the next cursor (`None`: 0, the end), and starts an array of
/// `len` elements.
pub(super) fn write_page(reply: Reply<'_>, next: Option<impl ToString>, len: usize) {
    write_cursor(reply, next);
    reply.array(len);
}

/// Begins a reply of two: writes the next cursor, 0 at the end. The found elements follow.
pub(super) fn write_cursor(reply: Reply<'_>, next: Option<impl ToString>) {
    reply.array(2);
    match next {
        Some(next) => reply.bulk(next.to_string().as_bytes()),
        None => reply.bulk(b"0"),
    }
}
