//! What came of an operation, for whoever asked for it.

use smallvec::SmallVec;

use crate::body::{Body, Content};
use crate::message::Message;
use crate::state::State;
use crate::{Millis, Receipt, Seq};

/// What became of a message that was to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// It is in the queue under this number.
    Added(Seq),
    /// Its id is taken; nothing was added.
    Taken,
}

/// A message that the queue no longer has.
#[derive(Debug, Clone, PartialEq)]
pub struct Gone {
    /// The message itself.
    pub message: Message,
    id: Option<Box<[u8]>>,
    payload: Box<[u8]>,
    /// The name of its group, which may be gone with it.
    group: Option<Box<[u8]>>,
}

impl Gone {
    /// A copy of a message that goes, of what it carries, and of the name of its
    /// group if it has one.
    pub fn of(message: &Message, content: Content, group: Option<&[u8]>) -> Gone {
        let mut message = message.clone();
        message.body = Body::nowhere(content.payload.len());
        Gone {
            message,
            id: content.id.map(Into::into),
            payload: content.payload.into(),
            group: group.map(Into::into),
        }
    }

    /// The name of its group, if it has one.
    pub fn group(&self) -> Option<&[u8]> {
        self.group.as_deref()
    }

    /// What it carries.
    pub fn content(&self) -> Content<'_> {
        Content {
            id: self.id.as_deref(),
            payload: &self.payload,
        }
    }
}

/// One delivery.
#[derive(Debug, Clone, PartialEq)]
pub struct Delivered {
    /// The message's number.
    pub seq: Seq,
    /// Its receipt; 0 where no ack is expected.
    pub receipt: Receipt,
    /// The how-many-th attempt it is, from 1.
    pub attempt: u32,
    /// The message, where the queue no longer has it.
    pub gone: Option<Box<Gone>>,
}

/// Deliveries of one operation.
pub type Deliveries = Vec<Delivered>;

/// What time has done.
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
    /// Records removed by age.
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

/// What came of an operation.
///
/// The tag takes a word, so that results are moved word by word. Behind a tag
/// of a byte they are moved from odd addresses, and the processor waits until
/// all that was just written has reached the cache.
#[derive(Debug, Clone, PartialEq)]
#[repr(u64)]
pub enum Done {
    /// It was done.
    Ok,
    /// To what extent.
    Count(u64),
    /// Whether there was something to do.
    Flag(bool),
    /// What became of each message sent.
    Sent(SmallVec<[Sent; 1]>),
    /// What was delivered.
    Fetched(Deliveries),
    /// The state each message was in; `None` where there is none.
    States(Vec<Option<State>>),
    /// What time has done.
    Ticked(Ticked),
    /// When a schedule fires next.
    NextFire(Millis),
}
