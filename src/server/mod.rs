//! Runs queues inside a server: changes, the timer, blocked clients, replay.
//!
//! - `commit/` is the one way in which anything changes a queue.
//! - `acksend.rs` changes several queues at once.
//! - `arrivals.rs` writes to the log which queues came with a clock that is ahead.
//! - `dangers.rs` writes to the log what endangers the queues.
//! - `standstill.rs` notices when the server did nothing for a while.
//! - `moving_slots.rs` keeps changes from keys that are not here while a slot of a cluster is on its way.
//! - `ties.rs` cuts what a queue names elsewhere, where a client brings it by RESTORE or COPY.
//! - `wakeups.rs` stores when the next slice of each queue must run, and `timer.rs` runs it.
//! - `waiting/` knows the clients that wait for messages, and `serving/` serves them. `blocked_wait.rs`
//!   and `bulk_ops/` hold clients that wait for the end of a message, and for a long command.
//! - `replay.rs` repeats the changes that other servers have made.
//! - `families/` knows which queues belong to one logical queue, and whose turn it is to give, and
//!   `own_slots.rs` which slots this node serves in a cluster.

pub mod acksend;
mod address;
mod arrivals;
pub mod blocked_wait;
mod bound_leases;
pub mod bulk_ops;
pub mod children;
pub mod clock;
pub mod commit;
pub mod config;
mod dangers;
pub mod delivery_reply;
mod due_index;
pub mod effects;
pub mod errors;
mod events;
pub mod families;
mod info;
pub mod message_reply;
pub mod metrics;
pub mod moving_slots;
pub mod own_slots;
mod packing;
pub mod replay;
pub mod replies;
pub mod rights;
pub mod serving;
mod standstill;
pub mod texts;
mod ties;
mod timer;
pub mod waiting;
pub mod wakeups;

use crate::redis::Context;
use crate::redis::{event_loop, events as redis_events, info as redis_info, timer as redis_timer};

/// Installs the timer, and subscribes to the server's events. Called once, at the end of the
/// module's load. Error: the server refuses a subscription.
pub fn start(ctx: &mut Context) -> Result<(), String> {
    if !redis_events::subscribe(ctx, events::EVENTS)
        || !event_loop::install(ctx, standstill::woke, before_sleep)
    {
        return Err("the server refuses a subscription to its events".to_owned());
    }
    redis_timer::install(ctx, timer::fire, timer::fire_of_burst);
    redis_info::install(ctx, info::write);
    wakeups::start_acting();
    Ok(())
}

/// Runs once in each turn of the event loop, before the server sleeps.
fn before_sleep(ctx: &mut Context) {
    wakeups::end_turn(ctx);
    if clock::was_set_back() {
        wakeups::clock_was_set_back(ctx);
        standstill::clock_was_set_back();
    }
    bulk_ops::before_sleep(ctx);
    blocked_wait::before_sleep(ctx);
    serving::serve::before_sleep(ctx);
    timer::before_sleep(ctx);
    packing::before_sleep(ctx);
    if standstill::before_sleep(wakeups::set_for()) {
        event_loop::turn_again();
    }
}
