//! Tests of the queue: random operations are compared with a slow model of the
//! command contract, and single promises of the contract have tests of their own.

mod acts;
mod batches;
mod bench;
mod breakers;
mod bulk;
mod chance;
mod closed;
mod driver;
mod errors;
mod find;
mod groups;
mod holds;
mod model;
mod named_batches;
mod order;
mod plan;
mod properties;
mod purge;
mod retention;
mod schedules;
mod slices;
mod timeouts;
