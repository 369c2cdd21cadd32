//! Serving those who wait, in the order they came.
//!
//! It is done once in each turn of the server's event loop, before it sleeps,
//! one queue in a turn and at most for `dq.tick-budget-us`: what many commands
//! of a turn brought is handed out in one go and told in one record, and the rest
//! goes on in the next turn. So what a command costs does not depend on who waits.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::command::consumer::{self, Asked};
use crate::config;
use crate::ffi::{clock, event_loop, Context, Name, OwnedName};

use super::visit::NOT_OURS_MS;
use super::{metrics, waiters, wake};

/// What commands have used of a slice in this turn, in microseconds.
static USED_US: AtomicU64 = AtomicU64::new(0);

/// The server is about to sleep: serves the lines that are noted.
pub fn before_sleep(ctx: &mut Context) {
    if !waiters::any_noted() {
        return;
    }
    USED_US.store(0, Relaxed);
    if !ctx.may_act() {
        match ctx.is_primary() {
            // A pause or failover is on: the timer brings us here again.
            true => wake::ensure(ctx, clock::now_ms() + wake::ASK_AGAIN_MS),
            false => waiters::forget_noted(),
        }
        return;
    }
    let start = clock::monotonic_us();
    let deadline = start + config::TICK_BUDGET_US.unsigned();
    ctx.gather_records();
    while let Some((db, key)) = waiters::next_noted() {
        if ctx.select_db(db) {
            let name = OwnedName::new(&key);
            serve(ctx, name.name(), db, deadline);
        }
        // The records of two queues would be wrapped in a transaction.
        if ctx.has_gathered() || clock::monotonic_us() >= deadline {
            break;
        }
    }
    if waiters::any_noted() {
        event_loop::turn_again();
    }
    let took = clock::monotonic_us() - start;
    metrics::count_slice(took);
    if took >= 1000 {
        ctx.latency_sample(c"dq-tick", took / 1000);
    }
}

/// Serves the line of a queue, if it is to be served, before a command takes
/// something from it. Whether that is done; all commands of a turn share one
/// slice.
pub fn before_command(ctx: &mut Context, key: Name<'_>) -> bool {
    let db = ctx.db();
    if !waiters::is_noted(db, key.bytes()) {
        return true;
    }
    let (used, budget) = (USED_US.load(Relaxed), config::TICK_BUDGET_US.unsigned());
    if used < budget && ctx.may_act() {
        let start = clock::monotonic_us();
        ctx.gather_records();
        serve(ctx, key, db, start + budget - used);
        let took = clock::monotonic_us() - start;
        // However short: what a turn does must have an end.
        USED_US.store(used + took.max(1), Relaxed);
    }
    !waiters::is_noted(db, key.bytes())
}

/// Serves a line until `deadline` on the monotonic clock.
fn serve(ctx: &mut Context, key: Name<'_>, db: i32, deadline: u64) {
    if !ctx.owns(key) {
        wake::note(ctx, db, key.bytes(), clock::now_ms() + NOT_OURS_MS);
        return;
    }
    let mut asked = waiters::begin(db, key.bytes());
    while let Some((ticket, waiter)) = waiters::next_in_line(db, key.bytes(), asked) {
        match consumer::ask(ctx, key, &waiter) {
            Asked::Over => {}
            Asked::Nothing => asked = ticket,
            Asked::Closed => break,
        }
        if clock::monotonic_us() >= deadline {
            return waiters::end(db, key.bytes(), Some(asked));
        }
    }
    waiters::end(db, key.bytes(), None);
}
