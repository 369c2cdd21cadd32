//! The conditions that a message waits for: the options BATCH, AFTER and PARK.
//!
//! A named batch is a set of messages of one queue that others can wait for. It
//! has nothing to do with the messages that one FETCH delivers of a group, which
//! are also called a batch (`index/leases`).

use std::num::NonZeroU64;

use crate::{Millis, MAX_EXACT, NEVER};

/// The options BATCH, AFTER and PARK of a message, at least one of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batching {
    /// The batch that the message joins. It is set only in an operation: the queue
    /// stores for each of its messages which batch it is in (`index/batches`).
    pub batch: Option<Box<[u8]>>,
    /// The batch that the message waits for.
    pub after: Option<After>,
    /// Whether it waits for a signal, once it waits for no batch.
    pub park: Option<Park>,
}

/// How long a message waits for a signal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Park {
    /// In ms, at least 1; `None` without end.
    pub ms: Option<NonZeroU64>,
}

impl Park {
    /// When the wait ends if it begins at `now` (Unix ms); NEVER if it does not.
    pub fn until(self, now: Millis) -> Millis {
        let end = |ms: NonZeroU64| now.saturating_add(ms.get()).min(MAX_EXACT);
        self.ms.map_or(NEVER, end)
    }
}

impl Batching {
    /// Whether it names any batch.
    pub fn is_of_batches(&self) -> bool {
        self.batch.is_some() || self.after.is_some()
    }

    /// Whether the message would wait for itself.
    pub fn is_after_itself(&self) -> bool {
        let after = self.after.as_ref().map(|after| &after.batch);
        after.is_some() && after == self.batch.as_ref()
    }
}

/// The batch that a message waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct After {
    /// The name of the batch.
    pub batch: Box<[u8]>,
    /// The effect of a dead message of the batch on this one.
    pub on_fail: OnFail,
    /// The messages of the batch when this one ceased to be held. Zeros while it is
    /// held.
    pub counts: Counts,
}

/// The effect of a dead message of a batch on a message that waits for the batch. The
/// numbers are part of the log and the snapshot format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum OnFail {
    /// The message continues to wait until the dead message is redriven, cancelled or removed.
    #[default]
    Hold = 0,
    /// The dead message counts as ended.
    Go = 1,
    /// The message dies, too.
    Die = 2,
}

impl OnFail {
    /// All values, in the order of their numbers.
    pub const ALL: [OnFail; 3] = [OnFail::Hold, OnFail::Go, OnFail::Die];

    /// Whether a message of this kind dies because of a batch with these messages.
    pub fn dies_of(self, counts: &Counts) -> bool {
        self == OnFail::Die && counts.dead > 0
    }

    /// The word for the value in arguments.
    pub fn name(self) -> &'static str {
        match self {
            OnFail::Hold => "HOLD",
            OnFail::Go => "GO",
            OnFail::Die => "DIE",
        }
    }
}

/// How many messages of a batch are in which state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Pending messages.
    pub pending: u64,
    /// Running messages.
    pub running: u64,
    /// Dead messages.
    pub dead: u64,
    /// Messages that have finished since the batch was opened.
    pub finished: u64,
    /// Messages that were cancelled since the batch was opened.
    pub cancelled: u64,
}

impl Counts {
    /// The number of messages that have neither ended nor died.
    pub fn live(&self) -> u64 {
        self.pending + self.running
    }

    /// The number of messages that have not ended; a dead one counts among them.
    pub fn unended(&self) -> u64 {
        self.live() + self.dead
    }
}
