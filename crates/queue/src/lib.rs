//! The queue as a library without Redis: pure and deterministic.
//!
//! Nothing in this crate reads a clock, draws a random number, does I/O or knows of
//! Redis. Every operation receives the current time and everything else it needs as
//! arguments, and returns what happened as data. The same operations at the same
//! times therefore give the same queue on a primary, on a replica, after a restart
//! and in a test.
//!
//! The life of a message: [`queue::Queue::apply`] takes an [`op::Op`];
//! `queue/send.rs` puts the message into the [`store`] and into the indexes of
//! pending messages (`waiting.rs`, `backlog/`); `queue/promote.rs` promotes it when
//! it is due; `queue/fetch.rs` leases it; `queue/settle.rs` ends it or makes it
//! pending again.

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

/// A duration in milliseconds, or a point of time as Unix time in milliseconds.
pub type Millis = u64;
/// The sequence number of a message in its queue: 1, 2, 3 ... in send order.
pub type Seq = u64;
/// The number of one delivery. It grows over the life of a queue and is never
/// reused.
pub type Receipt = u64;

/// Whether this is a build for tests, in which size limits are small. Test queues
/// are small too, so this lets them reach both sides of each limit, such as "all at
/// once" and "in slices".
const IS_SMALL: bool = cfg!(any(test, feature = "validate"));

/// The largest value of an argument in milliseconds, a receipt or a limit: 2^53 -
/// 1, which every client language can represent exactly.
pub const MAX_EXACT: u64 = (1 << 53) - 1;
/// A point of time that never comes: no end, or not yet happened.
pub const NEVER: Millis = u64::MAX;

/// An index of messages by a time in milliseconds, in send order within one
/// millisecond.
pub type TimeIndex = ordered::OrderedSet<(Millis, Seq)>;
