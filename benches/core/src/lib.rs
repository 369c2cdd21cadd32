//! Queues to measure the core and its codec on, without a server.

pub mod driver;
