//! Serves blocked clients, in the order in which they came.
//!
//! This happens once in each turn of the server's event loop, before the server sleeps, for at most
//! `dq.tick-budget-us`. Messages that many commands of a turn have
//! added are delivered together and replicated together. Clients that are left wait for the next
//! turn. So the cost of a command does not depend on the number of blocked clients.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::redis::{clock, event_loop, Context, Name, OwnedName};

use super::{passed_over, try_serve, Served};
use crate::server::address::QueueAddress;
use crate::server::waiting::blocked_fetch::BlockedFetch;
use crate::server::waiting::wait_list;
use crate::server::{config, families, metrics, rights, wakeups};

/// The part of this turn's slice that commands have used, in microseconds.
static USED_US: AtomicU64 = AtomicU64::new(0);

/// Serves scheduled wait lists, up to one whose log entries cannot be in one command with those of the
/// lists before it. Called before the server sleeps.
pub fn before_sleep(ctx: &mut Context) {
    if !wait_list::any_scheduled() {
        return;
    }
    USED_US.store(0, Relaxed);
    if !ctx.may_act() {
        match ctx.is_primary() {
            // During a pause or failover, the timer causes another turn later.
            true => wakeups::ensure(ctx, clock::now_ms() + wakeups::RETRY_MS),
            false => wait_list::unschedule_all(),
        }
        return;
    }
    let start = clock::monotonic_us();
    let deadline = start + config::TICK_BUDGET_US.unsigned();
    ctx.collect_log_entries();
    while clock::monotonic_us() < deadline {
        let may_be = |(db, key): &QueueAddress| ctx.can_collect(*db, key);
        let Some((db, key)) = wait_list::next_scheduled(may_be) else {
            break;
        };
        if ctx.select_db(db) {
            let name = OwnedName::new(&key);
            serve_list(ctx, name.name(), db, deadline);
        }
    }
    if wait_list::any_scheduled() {
        event_loop::turn_again();
    }
    let took = clock::monotonic_us() - start;
    metrics::count_slice(took);
    if took >= 1000 {
        ctx.latency_sample(c"dq-tick", took / 1000);
    }
}

/// Serves the wait list of a queue, if it is scheduled, after a slice of the timer on the queue, in
/// the same context: their log entries are collected into one command. `deadline` is one of the
/// monotonic clock.
pub fn after_slice(ctx: &mut Context, key: Name<'_>, db: i32, deadline: u64) {
    if wait_list::is_scheduled(db, key.bytes()) {
        serve_list(ctx, key, db, deadline);
    }
}

/// Serves the wait list of a queue, if it is scheduled, before a command takes messages from the
/// queue. Returns whether no client is left to be served. All commands of a turn share one slice.
pub fn before_command(ctx: &mut Context, key: Name<'_>) -> bool {
    let db = ctx.db();
    if !wait_list::is_scheduled(db, key.bytes()) {
        return true;
    }
    let (used, budget) = (USED_US.load(Relaxed), config::TICK_BUDGET_US.unsigned());
    if used < budget && ctx.may_act() {
        let start = clock::monotonic_us();
        ctx.collect_log_entries();
        serve_list(ctx, key, db, start + budget - used);
        let took = clock::monotonic_us() - start;
        // Each slice counts at least 1, even if it was short, so that the work in one turn is
        // limited.
        USED_US.store(used + took.max(1), Relaxed);
    }
    !wait_list::is_scheduled(db, key.bytes())
}

/// Serves a wait list until `deadline` on the monotonic clock.
fn serve_list(ctx: &mut Context, key: Name<'_>, db: i32, deadline: u64) {
    if !ctx.owns(key) {
        wakeups::schedule(
            ctx,
            db,
            key.bytes(),
            clock::now_ms() + wakeups::NOT_OWNED_RETRY_MS,
        );
        families::not_ours(ctx, db, key.bytes());
        return;
    }
    rights::commands_may_have_run();
    let mut ahead = None;
    let mut tried = wait_list::begin(db, key.bytes());
    while let Some((ticket, client)) = wait_list::next_client(db, key.bytes(), tried) {
        match turn_of(ctx, db, key, &client) {
            Turn::This => {}
            Turn::Other(first) => {
                ahead = Some(first);
                tried = ticket;
                continue;
            }
            Turn::Never => {
                tried = ticket;
                continue;
            }
        }
        let is_of_family = client.family.is_some() && client.handle().is_some();
        match try_serve(ctx, key, &client) {
            Served::Refused => serve_twins(ctx, key, &client),
            Served::Over => {
                if let Some(family) = client.family.as_ref().filter(|_| is_of_family) {
                    families::gave(db, &family.name, key.bytes());
                    let fetch = &client.request.fetch;
                    families::tokens::gave(db, &family.name, fetch, key.bytes());
                }
                serve_twins(ctx, key, &client);
            }
            Served::NothingForClass => {
                tried = ticket;
                if client.family.is_some() {
                    passed_over(ctx, key, client.request.fetch.no_ack);
                }
            }
            Served::NothingForAny => {
                families::cannot_give(db, key.bytes(), true);
                break;
            }
        }
        if clock::monotonic_us() >= deadline {
            return wait_list::end(db, key.bytes(), Some(tried));
        }
    }
    wait_list::end(db, key.bytes(), None);
    if let Some(first) = ahead {
        wait_list::schedule(db, first.bytes());
        wait_list::schedule(db, key.bytes());
    }
}

/// The queue whose turn it is to deliver to a client.
enum Turn {
    /// The client gets messages of this queue, or waits for it.
    This,
    /// The client gets messages of another queue of the family, which has not delivered for longer.
    Other(families::QueueName),
    /// This queue cannot give to the client, or its user may not take from the queue.
    Never,
}

fn turn_of(ctx: &Context, db: i32, key: Name<'_>, client: &BlockedFetch) -> Turn {
    let Some(family) = &client.family else {
        return Turn::This;
    };
    let query = families::Query {
        db,
        family: &family.name,
        user: &family.user,
        no_ack: client.request.fetch.no_ack,
    };
    match families::next(query, None) {
        Some((_, first)) if first.bytes() != key.bytes() => Turn::Other(first),
        Some((_, first)) if families::may_take(ctx, query, &first) => Turn::This,
        _ => Turn::Never,
    }
}

/// Serves the clients that get the same reply as this one.
fn serve_twins(ctx: &mut Context, key: Name<'_>, client: &BlockedFetch) {
    let mut twin = client.twin.take();
    while let Some(client) = twin {
        try_serve(ctx, key, &client);
        twin = client.twin.take();
    }
}
