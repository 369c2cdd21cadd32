//! What the server tells of itself. None of these changes a queue: they take
//! notes and set the timer.

use crate::ffi::events::{Events, Loading};
use crate::ffi::{Context, Name};

use super::{bound, endings, index, postponed, wake};

/// What is done about each event.
pub const EVENTS: Events = Events {
    role_changed,
    loading,
    flushed,
    swapped,
    client_closed,
    cron,
    key,
    unlinked,
};

/// Events after which a key may hold a queue that it did not hold before.
const ARRIVALS: [&[u8]; 4] = [b"restore", b"rename_to", b"copy_to", b"move_to"];

fn role_changed(ctx: &mut Context, primary: bool) {
    if primary {
        wake::start_acting();
        wake::ensure(ctx, 0);
    }
}

fn loading(ctx: &mut Context, step: Loading) {
    if step == Loading::Ended {
        endings::doubt_all(None);
        wake::start_acting();
        wake::ensure(ctx, 0);
    }
}

fn flushed(_: &mut Context, db: Option<i32>) {
    wake::with_index(|index| index.forget_db(db));
    endings::doubt_all(db);
    postponed::tell_flushed(db);
}

fn swapped(ctx: &mut Context, first: i32, second: i32) {
    wake::with_index(|index| index.swap(first, second));
    if !ctx.is_replay() {
        bound::swapped(first, second);
    }
    for db in [first, second] {
        endings::doubt_all(Some(db));
        postponed::tell_flushed(Some(db));
    }
    wake::ensure(ctx, 0);
}

fn client_closed(ctx: &mut Context, client: u64) {
    if bound::closed(client) {
        wake::ensure(ctx, 0);
    }
}

fn cron(ctx: &mut Context) {
    wake::end_waits(ctx);
    wake::watch_over(ctx);
}

fn key(ctx: &mut Context, event: &[u8], name: Name<'_>) {
    match event {
        b"rename_from" | b"move_from" => bound::leaves(ctx.db(), name.bytes()),
        // A log that is replayed tells of moves of long ago.
        b"rename_to" | b"move_to" if !ctx.is_replay() => bound::arrives(ctx.db(), name.bytes()),
        _ => {}
    }
    if event == b"loaded" {
        wake::note(ctx, ctx.db(), name.bytes(), index::LOADED);
    } else if ARRIVALS.contains(&event) && ctx.holds_queue(name) {
        wake::note(ctx, ctx.db(), name.bytes(), index::ARRIVED);
    }
}

fn unlinked(db: i32, key: &[u8]) {
    wake::with_index(|index| index.forget(db, key));
    endings::doubt(db, key);
    postponed::tell_gone(db, key);
}
