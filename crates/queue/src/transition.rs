//! Transitions of messages, as the event stream of a queue tells them (EVENTS).

use crate::message::state::Reason;
use crate::Millis;

/// The name of an event stream and the most entries that are kept in it.
pub const DEFAULT_EVENTS_LEN: u64 = 10_000;

/// What has happened to a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It was sent.
    Sent,
    /// Its due time has come, or it has come back. It waits for a consumer, or for its group.
    Ready,
    /// It was given to a consumer.
    Delivered,
    /// A consumer has finished it.
    Acked,
    /// A consumer has given it back.
    Nacked,
    /// The time of its lease ran out, or its connection was closed.
    Timeout,
    /// It died.
    Dead,
    /// It was cancelled.
    Cancelled,
    /// The batch that it was held by has ended.
    Released,
    /// A consumer has left a note, or removed it.
    Noted,
    /// Another message takes its place and its id.
    Replaced,
    /// It was dead, and is pending again.
    Redriven,
    /// It was given another due time.
    Rescheduled,
    /// It was removed. Without an id: all messages were.
    Purged,
}

impl Kind {
    /// The name of the event in the stream.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Sent => "sent",
            Kind::Ready => "ready",
            Kind::Delivered => "delivered",
            Kind::Acked => "acked",
            Kind::Nacked => "nacked",
            Kind::Timeout => "timeout",
            Kind::Dead => "dead",
            Kind::Cancelled => "cancelled",
            Kind::Released => "released",
            Kind::Noted => "noted",
            Kind::Replaced => "replaced",
            Kind::Redriven => "redriven",
            Kind::Rescheduled => "rescheduled",
            Kind::Purged => "purged",
        }
    }

    /// Whether a consumer has to do with it.
    pub fn is_of_consumer(self) -> bool {
        matches!(
            self,
            Kind::Delivered | Kind::Acked | Kind::Nacked | Kind::Timeout | Kind::Dead | Kind::Noted
        )
    }
}

/// One transition of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    /// What has happened.
    pub kind: Kind,
    /// When it happened, in Unix ms.
    pub at: Millis,
    /// The id of the message; empty if all messages were purged.
    pub id: Box<[u8]>,
    /// Its group, if it has one.
    pub group: Option<Box<[u8]>>,
    /// Its type, if it has one.
    pub label: Option<Box<[u8]>>,
    /// The number of its last attempt; 0 before the first.
    pub attempt: u32,
    /// The consumer that has to do with it, if there is one with a name.
    pub consumer: Option<Box<[u8]>>,
    /// Why it died, if it did.
    pub reason: Option<Reason>,
    /// How long from then it is due, in ms, if it is not due at once.
    pub delay: Option<Millis>,
}
