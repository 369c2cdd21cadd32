//! A durable, ordered delay queue as a native Redis data type.
//!
//! The queue itself is the library `dq-queue` (crates/queue), which knows nothing of Redis. This
//! crate connects it to a server. It has three layers, and each uses only those below it:
//!
//! 1. [`commands`] has one file for each verb, with its description, its handler and its reply.
//! 2. [`server`] has the one way to change a queue (`server/commit/`), replay, the timer and blocked
//!    clients.
//! 3. [`redis`] is a safe layer over the module API. Only this layer has unsafe code.

#![deny(unsafe_code)]

mod commands;
mod redis;
mod server;

/// The parts of the module that the entry point registers with the server.
static MODULE: redis::Module = redis::Module {
    commands: &commands::ALL,
    settings: &server::config::ALL,
    text_settings: &server::config::TEXTS,
    start: server::start,
};

entry_point!(MODULE);
