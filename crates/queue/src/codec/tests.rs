//! Random operations: what is written is read, and equal records make equal
//! queues.

mod golden;
mod ops;
mod primary;
mod queues;
mod records;
