//! What happens without a command: time, waiting clients, server events.
//!
//! `wake.rs` knows when to look at which queue, `visit.rs` is what the timer
//! does then. `waiters.rs` knows the clients that wait for messages, each in a
//! `line.rs`, and `serve.rs` serves them; `endings.rs` knows those who wait for
//! a message's end, `postponed.rs` those whose command is done in slices (of a
//! size that `pace.rs` finds), `bound.rs` those whose leases end with their
//! connection.

pub mod bound;
pub mod endings;
mod events;
pub mod index;
mod info;
pub mod line;
pub mod metrics;
pub mod moment;
mod pace;
pub mod postponed;
pub mod queue_clock;
pub mod serve;
mod visit;
pub mod waiters;
pub mod wake;

use crate::ffi::{event_loop, events as server, info as server_info, timer, Context};

/// Starts all of it. Called once, at the end of the module's load.
pub fn start(ctx: &mut Context) -> Result<(), String> {
    timer::install(visit::fire);
    if !server::subscribe(ctx, events::EVENTS) || !event_loop::install(ctx, before_sleep) {
        return Err("the server refuses to tell of its events".to_owned());
    }
    server_info::install(ctx, info::write);
    wake::start_acting();
    Ok(())
}

/// The server is about to sleep.
fn before_sleep(ctx: &mut Context) {
    endings::settle_doubts(ctx);
    serve::before_sleep(ctx);
}
