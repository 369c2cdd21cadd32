//! The explanation of a message by EXPLAIN.

use crate::message::kin::Children;
use crate::message::Message;
use crate::{Millis, NEVER};

/// The reason as a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// The message is not due yet.
    DueLater,
    /// A delivery failed and its backoff has not ended.
    Backoff,
    /// Another message of its group is next or holds the group.
    BehindHead,
    /// The number of leased batches of its group is at the limit.
    GroupBusy,
    /// Its group is paused.
    GroupPaused,
    /// The breaker of its group, or of the ungrouped messages, is open.
    BreakerOpen,
    /// The breaker is half-open, and its probe runs.
    BreakerProbing,
    /// The queue is paused.
    QueuePaused,
    /// A RATE of the queue or the group is used up.
    RateLimited,
    /// The number of leased messages of the queue is at MAXRUNNING.
    MaxRunning,
    /// The message can be delivered now.
    Next,
    /// The message is leased to a consumer.
    Running,
    /// The message was acked.
    Finished,
    /// The message failed too often, was rejected or expired.
    Dead,
    /// The message was cancelled.
    Cancelled,
    /// Messages of a batch that it waits for have not ended.
    BatchOpen,
    /// The message died, and went to another queue.
    Moved,
    /// One of its limits has no room for it.
    Limit,
    /// The message waits for a signal.
    Parked,
    /// Children that it waits for have not ended.
    ChildrenOpen,
}

impl Code {
    /// The code in the reply.
    pub fn name(self) -> &'static str {
        match self {
            Code::DueLater => "due-later",
            Code::Backoff => "backoff",
            Code::BehindHead => "behind-head",
            Code::GroupBusy => "group-busy",
            Code::GroupPaused => "group-paused",
            Code::BreakerOpen => "breaker-open",
            Code::BreakerProbing => "breaker-probing",
            Code::QueuePaused => "queue-paused",
            Code::RateLimited => "rate-limited",
            Code::MaxRunning => "max-running",
            Code::Next => "next",
            Code::Running => "running",
            Code::Finished => "finished",
            Code::Dead => "dead",
            Code::Cancelled => "cancelled",
            Code::BatchOpen => "batch-open",
            Code::Moved => "moved",
            Code::Limit => "limit",
            Code::Parked => "parked",
            Code::ChildrenOpen => "children-open",
        }
    }
}

/// The full explanation of a message's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The reason as a code.
    pub code: Code,
    /// The reason as one sentence. It contains nothing that a client has sent.
    pub why: String,
    /// When the reason ends (Unix ms), if that is known.
    pub until: Option<Millis>,
    /// The id, group or consumer that causes it, if any.
    pub by: Option<Box<[u8]>>,
}

impl Explanation {
    pub(super) fn new(code: Code, why: impl Into<String>) -> Explanation {
        Explanation {
            code,
            why: why.into(),
            until: None,
            by: None,
        }
    }

    pub(super) fn until(mut self, until: Option<Millis>) -> Explanation {
        self.until = until.filter(|at| *at != NEVER);
        self
    }

    pub(super) fn by(mut self, by: Option<&[u8]>) -> Explanation {
        self.by = by.map(Into::into);
        self
    }
}

/// The reason why a parked message waits.
pub(super) fn explain_parked(message: &Message, now: Millis) -> Explanation {
    let until = message.parked_until();
    let why = match until {
        Some(at) => format!(
            "It waits for a signal, for {} ms at most.",
            at.saturating_sub(now)
        ),
        None => "It waits for a signal.".into(),
    };
    Explanation::new(Code::Parked, why).until(until)
}

/// The reason why a message waits that children hold.
pub(super) fn explain_children(children: &Children) -> Explanation {
    let (ended, counts) = (children.counts.ended(), children.counts);
    let mut why = format!(
        "It waits for {} children, of which {ended} have ended",
        children.total
    );
    if counts.kept > 0 {
        why += &format!(" and {} are dead and hold it", counts.kept);
    }
    why += match children.dies {
        true => "; it is about to die of one that is dead.",
        false => ".",
    };
    Explanation::new(Code::ChildrenOpen, why)
}
