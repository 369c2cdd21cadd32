//! Encodes a whole queue.
//!
//! A snapshot is a stream of frames, cut into blocks of one size regardless of
//! the frames. A frame is its length, a tag and the data that the tag says. The
//! frames come in this order:
//!
//! - the data that a queue has once;
//! - its schedules, limits with names, batches and remembered ids;
//! - its messages in the order of sending, each group (with its breaker just
//!   behind it), consumer, named batch and parent just before
//!   the first message that names it, and each salt of ids just before the
//!   first message whose id was generated with it, unless it is that of the
//!   queue;
//! - the groups and consumers that no message names;
//! - what became of dead messages that were to go to another queue;
//! - the ties to other keys that the queue has lost;
//! - the deliveries that can be repeated by their token, and the ends that leases
//!   had before their connections closed;
//! - the held messages that are about to be released;
//! - the number of messages.
//!
//! Numbers are written as differences from their neighbours, so a plain message
//! takes five to seven bytes and its payload.
//!
//! Behind the data that a queue has once come its dictionaries. Packed payloads are saved packed,
//! with their lengths.
//!
//! Equal queues have equal snapshots, whichever operations led to them, except that payloads may be
//! packed. In the form for digests none is.

mod blocks;
mod children;
mod dead_letters;
mod detached;
pub(in crate::codec::snapshot) mod frames;
mod history;
pub(in crate::codec) mod read;
mod write;

use crate::{Millis, Receipt, Seq};

pub use write::{encode, Payloads};

/// The version of the encoding. A later one reads this one, too.
pub const VERSION: u32 = 1;

/// The last of the versions of builds before the first release, which began again with 1. So the
/// version after [`VERSION`] is the one after this.
pub const LAST_BEFORE_FIRST: u32 = 6;

/// The size of the blocks of a saved queue, in bytes. The server compresses
/// each block by itself. Where payloads do not compress, a small block takes
/// less time because there are fewer positions to compare.
pub const SAVED: usize = 2 * 1024;

/// The size of blocks that are not compressed, in bytes: those of a rewritten
/// log or a digest.
pub const LARGE: usize = 64 * 1024;

/// The tags of frames. The tag of a message also holds its stored state and
/// flags.
pub mod tag {
    pub const END: u8 = 0;
    pub const WHOLE: u8 = 1;
    pub const GROUP: u8 = 2;
    pub const CONSUMER: u8 = 3;
    pub const SCHEDULE: u8 = 4;
    pub const DEDUP: u8 = 5;
    pub const BATCH: u8 = 6;
    /// The salt of the ids of the messages that follow. Before the first such
    /// frame it is the salt of the queue.
    pub const SALT: u8 = 7;
    /// The breaker of a group that came before, or of the ungrouped messages.
    pub const BREAKER: u8 = 8;
    /// A named batch, or messages that are held by one no longer.
    pub const NAMED: u8 = 9;
    /// The last delivery of a consumer that asked for it with a token.
    pub const TOKEN: u8 = 10;
    /// The same of a FETCH that has applied something: what, and the delivery, which may be empty.
    pub const APPLIED: u8 = 25;
    /// The end that a lease had before its connection closed.
    pub const OLD_END: u8 = 11;
    /// The outcome of dead messages that were to go to another queue.
    pub const DEAD_LETTERS: u8 = 12;
    /// A limit with a name, or a pattern: its rule and its usage.
    pub const LIMIT: u8 = 13;
    /// The hidden group of messages without a group that name the same limits.
    pub const HIDDEN: u8 = 14;
    /// The usage of a group, or of the ungrouped messages (FAIR).
    pub const USAGE: u8 = 15;
    /// The parent of the following messages.
    pub const SIBLINGS: u8 = 16;
    /// A dictionary of packed payloads.
    pub const DICTIONARY: u8 = 26;
    /// The dictionary with which the payloads of the messages that follow are packed. Before the
    /// first such frame they are not packed.
    pub const PACKED: u8 = 27;
    /// A deduplication id, and the id of its first message.
    pub const DEDUP_ID: u8 = 28;
    /// The ties to other keys that the queue has lost.
    pub const DETACHED: u8 = 24;
    /// A report to a parent that it has not counted yet.
    pub const REPORT: u8 = 17;
    pub const MESSAGE: u8 = 0x80;
    /// The number of bits by which the stored state is shifted in the tag of a message.
    pub const STATE: u32 = 4;
    pub const HISTORY: u8 = 8;
    /// A message without a history whose number is one more than that of the message
    /// before it, and which was sent in the same millisecond.
    pub const NEXT: u8 = 0x40;
    /// The number of bits by which the stored state is shifted in the tag of such a message.
    pub const STATE_OF_NEXT: u32 = 3;
    pub const GROUPED: u8 = 4;
    pub const ID: u8 = 2;
    pub const PRIORITY: u8 = 1;
}

/// The parts that a message may have beyond those of a plain one, as bits of a
/// number.
pub mod extra {
    pub const CHOICES: u64 = 1;
    pub const RUNNING: u64 = 1 << 1;
    pub const STARTED: u64 = 1 << 2;
    pub const FIRST_STARTED: u64 = 1 << 3;
    pub const ATTEMPT: u64 = 1 << 4;
    pub const CONSUMER: u64 = 1 << 5;
    pub const ENDED: u64 = 1 << 6;
    pub const FAILURES: u64 = 1 << 7;
    pub const SCORE_BASE: u64 = 1 << 8;
    pub const TTL_BASE: u64 = 1 << 9;
    pub const TEXTS: u64 = 1 << 10;
    pub const DUE_AT: u64 = 1 << 11;
    /// When the first send was done of the row that the message ends.
    pub const FIRST_SENT: u64 = 1 << 12;
    pub const BATCH: u64 = 1 << 13;
    pub const AFTER_COUNTS: u64 = 1 << 14;
    /// The due time was given as a point of time.
    pub const POINT: u64 = 1 << 15;
    /// The failed attempts that the message keeps.
    pub const ERRORS: u64 = 1 << 16;
    /// The message that waits for the end of its run.
    pub const RERUN: u64 = 1 << 17;
    /// The signal that came last.
    pub const SIGNAL: u64 = 1 << 18;
    /// The counts of its children.
    pub const CHILDREN: u64 = 1 << 19;
    /// The set of siblings that the message is in.
    pub const SIBLINGS: u64 = 1 << 20;
    /// The dead message is on its way to another queue.
    pub const LEAVING: u64 = 1 << 21;
    pub const ALL: u64 = (1 << 22) - 1;
}

/// The bits of the byte of the reason beside the number of the reason.
pub mod texts {
    /// The reason is in these bits.
    pub const REASON: u8 = 0x3f;
    /// The message was snoozed after it failed.
    pub const SNOOZED: u8 = 0x40;
    /// A note follows.
    pub const NOTE: u8 = 0x80;
}

/// The parts that a group may have, as bits.
pub mod group_flags {
    pub const SETTINGS: u8 = 1;
    pub const PAUSE: u8 = 2;
    pub const HELD: u8 = 4;
    pub const LINE: u8 = 8;
    pub const TURN: u8 = 16;
    pub const WAKE: u8 = 32;
    /// The limit for which the group waits.
    pub const HOME: u8 = 64;
    pub const ALL: u8 = SETTINGS | PAUSE | HELD | LINE | TURN | WAKE | HOME;
}

/// The parts of a limit, as bits.
pub mod limit_flags {
    /// The limit has its own rule.
    pub const RULE: u8 = 1;
    /// CONCURRENCY counts costs.
    pub const WEIGHTED: u8 = 2;
    /// The first group that waits for the limit is in the ready line.
    pub const OPEN: u8 = 4;
    pub const ALL: u8 = RULE | WEIGHTED | OPEN;
}

/// The phase of a breaker.
pub mod phase {
    pub const CLOSED: u8 = 0;
    pub const OPEN: u8 = 1;
    pub const HALF_OPEN: u8 = 2;
}

/// The numbers from which the next ones are written as differences.
#[derive(Debug, Clone, Copy, Default)]
pub struct Bases {
    /// The number of the last message.
    pub seq: Seq,
    /// When the last message was sent, in Unix ms.
    pub sent_at: Millis,
    /// The last receipt that was written.
    pub receipt: Receipt,
}
