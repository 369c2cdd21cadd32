//! The steps after slots have come or gone, for clients that wait for families.

use crate::redis::{clock, Context};

use crate::server::waiting::wait_list;
use crate::server::{families, own_slots, wakeups};

/// Reads the slots of this node, if that was not done lately. Some time after they have changed, the
/// clients that are blocked in NFETCH get their reply, at most four times a second, so that they can
/// look at the cluster anew. O(nodes).
pub fn check(ctx: &Context) {
    if !ctx.is_in_cluster() {
        return;
    }
    // This comes first, so that waiting clients get messages of queues that have come with the
    // change.
    if own_slots::must_tell() {
        super::answer_families();
    }
    if own_slots::refresh(ctx) {
        // Clients that wait here get messages of queues that have come, without a new call.
        for (db, key) in families::slots_changed() {
            wait_list::schedule(db, &key);
        }
    }
}

/// Checks often while a slot is expected. Called by the timer.
pub fn follow(ctx: &Context) {
    if own_slots::expected_within().is_some() {
        check(ctx);
        if let Some(ms) = own_slots::expected_within() {
            wakeups::ensure(ctx, clock::now_ms() + ms);
        }
    }
}
