//! The outcome of an operation for its caller.

use smallvec::SmallVec;

use crate::message::body::{Body, Content};
use crate::message::given::GivenId;
use crate::message::kin::Parent;
use crate::message::packing::Payload;
use crate::message::state::State;
use crate::message::Message;
use crate::{Millis, Receipt, Seq};

/// The outcome for one message of a send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// The message was added and has this number.
    Added(Seq),
    /// A running message, the one with this number, has the id. The sent message waits
    /// until that run ends.
    Waits(Seq),
    /// The id is taken, so nothing was added.
    Taken,
    /// The deduplication id counts for an earlier message, so nothing was added.
    Duplicate,
    /// The group has no pending or running message, so nothing was added.
    NoGroup,
    /// Whether the queue has the message of a signal. An ACKSEND has these behind those
    /// of its messages.
    Signaled(bool),
}

/// A copy of a message that the queue no longer has.
#[derive(Debug, Clone, PartialEq)]
pub struct Gone {
    /// The message, whose body holds no content any more.
    pub message: Message,
    id: Option<Box<[u8]>>,
    payload: Box<[u8]>,
    /// The name of its group, which may have been removed with it.
    group: Option<Box<[u8]>>,
    /// The name of its batch, which may have been forgotten.
    batch: Option<Box<[u8]>>,
    /// Its parent, which may have been forgotten.
    parent: Option<Box<Parent>>,
}

impl Gone {
    /// Copies a message that is about to be removed, its content, and the names
    /// of its group and its batch if it has them. O(size of the content).
    pub fn of(
        message: &Message,
        content: Content,
        group: Option<&[u8]>,
        batch: Option<&[u8]>,
    ) -> Gone {
        let mut message = message.clone();
        message.body = Body::nowhere(content.payload.len());
        Gone {
            message,
            id: content.id.map(|id| id.id().to_box()),
            payload: content.payload.bytes().into(),
            group: group.map(Into::into),
            batch: batch.map(Into::into),
            parent: None,
        }
    }

    /// The name of its group, if it has one.
    pub fn group(&self) -> Option<&[u8]> {
        self.group.as_deref()
    }

    /// The name of its batch, if it is in one.
    pub fn batch(&self) -> Option<&[u8]> {
        self.batch.as_deref()
    }

    /// Adds its parent, if it is a child.
    pub fn with_parent(mut self, parent: Option<&Parent>) -> Gone {
        self.parent = parent.cloned().map(Box::new);
        self
    }

    /// Its parent, if it is a child.
    pub fn parent(&self) -> Option<&Parent> {
        self.parent.as_deref()
    }

    /// The id and the payload of the message.
    pub fn content(&self) -> Content<'_> {
        Content {
            id: self.id.as_deref().map(GivenId::Text),
            payload: Payload::Plain(&self.payload),
        }
    }
}

/// One delivery.
#[derive(Debug, Clone, PartialEq)]
pub struct Delivered {
    /// The number of the message.
    pub seq: Seq,
    /// The receipt; 0 where no ack is expected.
    pub receipt: Receipt,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The message, if the queue no longer has it.
    pub gone: Option<Box<Gone>>,
}

/// The deliveries of one operation.
pub type Deliveries = Vec<Delivered>;

/// Counts of the due events that were processed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ticked {
    /// Delayed and retry messages that became due.
    pub due: u64,
    /// Leases that ran out.
    pub timeouts: u64,
    /// Messages that died because they were out of retries.
    pub dead: u64,
    /// Messages that died because they had expired.
    pub expired: u64,
    /// Records of ended messages that were removed because of their age.
    pub pruned: u64,
    /// Schedules that fired.
    pub fired: u64,
}

impl std::ops::AddAssign for Ticked {
    fn add_assign(&mut self, other: Ticked) {
        self.due += other.due;
        self.timeouts += other.timeouts;
        self.dead += other.dead;
        self.expired += other.expired;
        self.pruned += other.pruned;
        self.fired += other.fired;
    }
}

/// The outcome of an operation.
///
/// The tag takes a whole word so that outcomes are copied word by word. Behind
/// a tag of one byte the compiler copies them from odd addresses, and each such
/// load waits until the bytes that were just stored have reached the cache.
#[derive(Debug, Clone, PartialEq)]
#[repr(u64)]
pub enum Done {
    /// The operation was done.
    Ok,
    /// How many messages the operation changed.
    Count(u64),
    /// Whether the operation changed anything.
    Flag(bool),
    /// The outcome for each message of a send.
    Sent(SmallVec<[Sent; 1]>),
    /// The outcome for each message and each signal that was sent after an ack; `None` if the
    /// receipt was stale, and nothing was done.
    AckSent(Option<SmallVec<[Sent; 1]>>),
    /// The deliveries of a fetch.
    Fetched(Deliveries),
    /// The state of each message before the operation; `None` if there is no such
    /// message.
    States(Vec<Option<State>>),
    /// The counts of the due events that were processed.
    Ticked(Ticked),
    /// When the schedule fires next, in Unix ms.
    NextFire(Millis),
}

impl Done {
    /// Whether a SEND has only counted a duplicate: its id is taken, or its deduplication id counts
    /// for an earlier message.
    pub fn is_duplicate(&self) -> bool {
        let Done::Sent(sent) = self else {
            return false;
        };
        matches!(sent.first(), Some(Sent::Taken | Sent::Duplicate))
    }
}
