//! A driver for benchmarks of the core and its codec, without a server.

pub mod driver;
