//! Tests of the queue: random operations against a slow model of the command
//! contract, and the promises of the contract one by one.

mod acts;
mod approach;
mod batches;
mod bench;
mod chance;
mod driver;
mod groups;
mod holds;
mod model;
mod order;
mod properties;
mod purge;
mod remains;
mod retention;
