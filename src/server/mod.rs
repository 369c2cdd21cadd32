//! What keeps queues correct inside a server: one way to change them, the timer, blocked clients,
//! replay.
//!
//! `commit.rs` is the one way in which anything changes a queue. `wakeups.rs` knows when the next
//! slice of which queue is to run, and `timer.rs` runs it. `blocked_fetch/`, `blocked_wait.rs` and
//! `bulk_ops/` know the clients that wait: for messages, for the end of one, for a long command.
//! `replay.rs` repeats what other servers did.

pub mod blocked_fetch;
pub mod blocked_wait;
mod bound_leases;
pub mod bulk_ops;
pub mod clock;
pub mod commit;
pub mod config;
pub mod delivery;
mod due_index;
pub mod errors;
mod events;
mod info;
pub mod message_reply;
pub mod metrics;
pub mod replay;
mod timer;
pub mod wakeups;

use std::rc::Rc;

use crate::redis::Context;
use crate::redis::{
    event_loop, events as server_events, info as server_info, timer as server_timer,
};

/// Where a queue is: the database and the name of its key.
pub type Address = (i32, Rc<[u8]>);

/// Starts the timer, and subscribes to the server's events. Called once, at the end of the
/// module's load.
pub fn start(ctx: &mut Context) -> Result<(), String> {
    server_timer::install(timer::fire);
    if !server_events::subscribe(ctx, events::EVENTS) || !event_loop::install(ctx, before_sleep) {
        return Err("the server refuses to tell of its events".to_owned());
    }
    server_info::install(ctx, info::write);
    wakeups::start_acting();
    Ok(())
}

/// The server is about to sleep.
fn before_sleep(ctx: &mut Context) {
    blocked_wait::before_sleep(ctx);
    blocked_fetch::serve::before_sleep(ctx);
}
