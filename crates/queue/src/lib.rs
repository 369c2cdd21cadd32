//! The queue itself: pure, deterministic, free of Redis.
//!
//! Nothing in here reads a clock, draws a random number, does I/O or knows
//! what Redis is. Every operation takes the moment it happens at and all else
//! it needs as arguments, and answers what happened as data. So the same
//! operations with the same moments give the same queue on a primary, on a
//! replica, after a restart and in a test.
//!
//! The way of a message: [`queue::Queue::apply`] takes an [`op::Op`];
//! `queue/send.rs` puts the message into the [`store`] and into the indexes of
//! what waits (`waiting.rs`, `backlog/`); `queue/promote.rs` promotes it when it is
//! due; `queue/fetch.rs` leases it; `queue/settle.rs` ends it or brings it
//! back.

#![forbid(unsafe_code)]

pub mod args;
pub mod backlog;
pub mod body;
pub mod codec;
pub mod consumer;
pub mod error;
pub mod extension;
pub mod footprint;
pub mod group;
pub mod groups;
pub mod history;
pub mod holds;
pub mod id;
pub mod json;
pub mod lane;
pub mod lease;
pub mod limits;
pub mod line;
pub mod long_list;
mod merge;
pub mod message;
pub mod name_table;
pub mod number_table;
pub mod op;
pub mod order_key;
pub mod ordered;
pub mod purges;
pub mod queue;
pub mod quote;
pub mod rate;
pub mod reasons;
pub mod records;
pub mod recurrence;
pub mod retry;
pub mod schedule;
pub mod settings;
pub mod slots;
pub mod state;
pub mod stats;
pub mod store;
pub mod table;
pub mod waiting;

pub use error::Error;
pub use op::{Done, Moment, Op};
pub use queue::Queue;

/// A length of time, or a point of it as Unix time, in milliseconds.
pub type Millis = u64;
/// The number of a message in its queue: 1, 2, 3 ... in the order of sending.
pub type Seq = u64;
/// The number of one delivery; grows over the life of a queue, never reused.
pub type Receipt = u64;

/// Whether this is built for tests whose queues are small: what is done at once
/// or in slices, by how much it is, goes both ways there.
const IS_SMALL: bool = cfg!(any(test, feature = "validate"));

/// The largest value of a millisecond argument, a receipt or a limit: what
/// every client language can hold exactly (2^53 - 1).
pub const MAX_EXACT: u64 = (1 << 53) - 1;
/// A point of time that never comes.
pub const NEVER: Millis = u64::MAX;

/// An index of messages by a time, in the order of sending within one
/// millisecond.
pub type TimeIndex = ordered::OrderedSet<(Millis, Seq)>;
