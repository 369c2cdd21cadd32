//! A durable, ordered delay queue as a native Redis data type.
//!
//! The queue itself is the library `dq-queue` (crates/queue), which knows nothing of Redis. This
//! crate connects it to a server, in three layers; each uses only those below it:
//!
//! 1. [`commands`]: one file for each verb: its description, its handler, its reply.
//! 2. [`server`]: the one way to change a queue (`commit.rs`), replay, the timer, blocked clients.
//! 3. [`redis`]: a safe layer over the module API, the only unsafe code.

#![deny(unsafe_code)]

mod commands;
mod redis;
mod server;

/// What the server is told of this module.
static MODULE: redis::Module = redis::Module {
    commands: &commands::ALL,
    settings: &server::config::ALL,
    start: server::start,
};

entry_point!(MODULE);
