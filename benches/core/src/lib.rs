//! Drives a queue without a server, to measure the core and its codec.

pub mod driver;
