//! Tests of the encodings with random operations: written operations can be read, and
//! equal log entries lead to equal queues.

mod golden;
mod numbers;
mod ops;
mod packing;
mod primary;
mod queues;
mod records;
mod transitions;
