//! Tests of the queue: random operations are compared with a slow model of the
//! command contract, and single promises of the contract have tests of their own.

mod batches;
mod breakers;
mod bulk;
mod children;
mod closed;
mod dead_letters;
mod driver;
mod fair;
mod find;
mod fixture;
mod holds;
mod limits;
mod missed_fires;
mod named_batches;
mod ops;
mod order;
mod pages;
mod parks;

mod plan;
mod properties;
mod purge;
mod random;
mod retention;
mod schedules;
mod slices;
mod small;
mod stuck;
