//! The queue as a library without Redis: pure and deterministic.
//!
//! Nothing in this crate reads a clock, draws a random number, does I/O or knows of
//! Redis. Every operation receives the current time and everything else it needs as
//! arguments, and returns what happened as data. The same operations at the same
//! times therefore give the same queue on a primary, on a replica, after a restart
//! and in a test.
//!
//! # Three rules
//!
//! 1. Deterministic: state, operation and time decide everything.
//! 2. Plan, then commit: all that can fail comes before the first change. An error
//!    means that nothing has changed.
//! 3. Bounded work: an operation costs O(log n) for each message that it concerns,
//!    and work that is due is done in slices of as many steps as the caller allows.
//!
//! # Layout
//!
//! | | |
//! |---|---|
//! | [`handles`] | the small types by which everything is named |
//! | [`op`] | all that can be done to a queue, and what came of it, as data |
//! | [`queue`] | the queue: `ops/` has a file for each verb, `time/` what is due by itself, `inspect/` what only reads, `rebuild/` snapshots |
//! | [`message`], [`groups`], [`schedule`], [`consumer`], [`settings`], [`stats`] | what a queue consists of |
//! | [`index`] | which message comes next: pending keys, the ready line, leases, records |
//! | [`collections`] | ordered sets, tables and lists that know nothing of queues |
//! | [`effect`] | what an acknowledgement does to keys that hold no queue |
//! | [`args`] | the words of a command become an [`Op`]; one file for each verb |
//! | [`codec`] | bytes become a queue or an operation, and back |
//! | [`json`] | the values that GROUPPUSH reads from a payload |
//!
//! # The life of a message
//!
//! [`Queue::apply`] takes an [`Op`]. `queue/ops/send.rs` puts the message into the
//! [store](message::store) and into the indexes of pending messages
//! (`index/waiting.rs`, `groups/backlog/`); `queue/time/promote.rs` promotes it when
//! it is due; `queue/ops/fetch.rs` leases it; `queue/ops/ack.rs` ends it, or
//! `queue/ops/nack.rs` makes it pending again.
//!
//! # Glossary
//!
//! | word | meaning |
//! |---|---|
//! | message | a payload with an id and a due time; pending, running, or a record once it has ended |
//! | group | messages that are delivered in their own order, a few at a time |
//! | lease, receipt | a consumer's time with a message, and the number of that delivery |
//! | ready line | the groups that can give a message now, and the ungrouped messages as one more, in the order of their turns |
//! | position | a place in the ready line |
//! | pending key | what an index knows of a pending message |
//! | stored state | the state that a message is kept in; what a client sees also depends on its group and on the time |
//! | log entry | one operation as it is replicated; "verbatim" where the command itself is replicated instead |

#![forbid(unsafe_code)]

pub mod args;
pub mod codec;
pub mod collections;
pub mod consumer;
pub mod dead_letters;
pub mod detached;
pub mod effect;
pub mod error;
pub mod family;
pub mod glob;
pub mod groups;
pub mod handles;
pub mod index;
pub mod json;
pub mod keyspace;
pub mod limits;
pub mod message;
pub mod named_limits;
pub mod op;
pub mod queue;
pub mod quote;
pub mod schedule;
pub mod seeded;
pub mod settings;
pub mod stats;
pub mod sums;
pub mod text;
pub mod transition;

pub use error::Error;
pub use handles::{ConsumerIx, GroupIx, LimitIx, Millis, Receipt, Seq, MAX_EXACT, NEVER};
pub use op::{Done, Moment, Op};
pub use queue::Queue;

/// Whether this is a build for tests, in which size limits are small. Test queues
/// are small too, so this lets them reach both sides of each limit, such as "all at
/// once" and "in slices".
const IS_SMALL: bool = cfg!(any(test, feature = "validate"));

/// An index of messages by a time in milliseconds, in send order within one
/// millisecond.
pub type TimeIndex = collections::ordered::OrderedSet<(Millis, Seq)>;
