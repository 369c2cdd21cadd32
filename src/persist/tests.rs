//! Random operations: what is written is read, and equal records make equal
//! queues.

mod ops;
mod queues;
mod records;
