//! The handlers of the server's events. They remember what has happened, and set the timer. None
//! of them changes a queue, except that one which arrives may lose its ties to other keys.

use crate::redis::events::{Events, Loading};
use crate::redis::{Context, Name};

use super::due_index::Due;
use super::{
    arrivals, blocked_wait, bound_leases, bulk_ops, dangers, families, serving, ties, wakeups,
};

/// The handler of each event.
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
    dangers::role_changed();
    if primary {
        wakeups::start_acting();
        wakeups::ensure(ctx, 0);
    }
}

fn loading(ctx: &mut Context, step: Loading) {
    if step == Loading::Ended {
        blocked_wait::check_all_later(None);
        wakeups::start_after_load();
        wakeups::ensure(ctx, 0);
    }
}

fn flushed(_: &mut Context, db: Option<i32>) {
    wakeups::with_index(|index| index.forget_db(db));
    families::forget_db(db);
    blocked_wait::check_all_later(db);
    bulk_ops::end_all(db, "the database was flushed");
}

fn swapped(ctx: &mut Context, first: i32, second: i32) {
    wakeups::with_index(|index| index.swap(first, second));
    families::swap(first, second);
    if !ctx.is_replay() {
        bound_leases::databases_swapped(first, second);
    }
    for db in [first, second] {
        blocked_wait::check_all_later(Some(db));
        bulk_ops::end_all(Some(db), "the database was swapped");
    }
    wakeups::ensure(ctx, 0);
}

fn client_closed(ctx: &mut Context, client: u64) {
    if bound_leases::connection_closed(client) {
        wakeups::ensure(ctx, 0);
    }
}

fn cron(ctx: &mut Context) {
    wakeups::end_waits(ctx);
    wakeups::run_overdue(ctx);
    serving::check_families(ctx);
    arrivals::write_line();
    dangers::write_lines(ctx);
}

fn key(ctx: &mut Context, event: &[u8], name: Name<'_>) {
    match event {
        b"rename_from" | b"move_from" => bound_leases::key_leaves(ctx.db(), name.bytes()),
        // An append-only file that is being replayed repeats moves of long ago.
        b"rename_to" | b"move_to" if !ctx.is_replay() => {
            bound_leases::key_arrived(ctx.db(), name.bytes())
        }
        _ => {}
    }
    if event == b"loaded" {
        wakeups::schedule(ctx, ctx.db(), name.bytes(), Due::Loaded);
        families::arrived(ctx.db(), name.bytes());
    } else if ARRIVALS.contains(&event) && ctx.holds_queue(name) {
        if matches!(event, b"restore" | b"copy_to") {
            ties::arrived(ctx, name);
        }
        wakeups::schedule(ctx, ctx.db(), name.bytes(), Due::Arrived);
        families::arrived(ctx.db(), name.bytes());
    }
}

fn unlinked(db: i32, key: &[u8]) {
    wakeups::with_index(|index| index.forget(db, key));
    families::forget(db, key);
    blocked_wait::check_later(db, key);
    bulk_ops::end(
        db,
        key,
        "the queue was deleted, renamed, replaced or loaded anew",
    );
}
