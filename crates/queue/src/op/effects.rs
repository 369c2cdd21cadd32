//! The effects of operations on everyone but the caller: replicas, listeners
//! and clients that wait.

use crate::message::state::State;
use crate::transition::Transition;

/// A set of kinds of events, which listeners are notified of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Happened(u16);

impl Happened {
    /// A message was sent.
    pub const SENT: Happened = Happened(1);
    /// A message became ready.
    pub const READY: Happened = Happened(1 << 1);
    /// A message was delivered.
    pub const DELIVERED: Happened = Happened(1 << 2);
    /// A message was acked.
    pub const ACKED: Happened = Happened(1 << 3);
    /// A message was nacked.
    pub const NACKED: Happened = Happened(1 << 4);
    /// The time of a lease ran out.
    pub const TIMEOUT: Happened = Happened(1 << 5);
    /// A message died.
    pub const DEAD: Happened = Happened(1 << 6);
    /// A message was cancelled.
    pub const CANCELLED: Happened = Happened(1 << 7);
    /// A consumer left or removed the note of a message.
    pub const NOTED: Happened = Happened(1 << 8);
    /// A breaker opened, became half-open or closed.
    pub const BREAKER: Happened = Happened(1 << 9);

    /// Adds the kinds of another set.
    pub fn add(&mut self, kind: Happened) {
        self.0 |= kind.0;
    }

    /// Whether the set has a kind in common with `kind`.
    pub fn has(self, kind: Happened) -> bool {
        self.0 & kind.0 != 0
    }

    /// Whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// The end of a message that a client waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// The id of the message.
    pub id: Box<[u8]>,
    /// The final state with the result or error text; `None` if the message was
    /// removed.
    pub end: Option<(State, Option<Box<[u8]>>)>,
}

/// The effects of a queue since the server last took them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Effects {
    /// Whether the operation has made a change that must be replicated.
    pub changed: bool,
    /// Whether the operation has made a change that a client can see.
    pub visible: bool,
    /// The kinds of events that happened.
    pub happened: Happened,
    /// The messages to waiting clients and to the event stream, if there are any.
    pub told: Option<Box<Told>>,
}

/// The messages to waiting clients and to the event stream about an operation on a queue. Most
/// operations have none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Told {
    /// The ends of messages that clients wait for.
    pub endings: Vec<Ending>,
    /// The transitions of messages, in order, where the queue has an event stream. Every server
    /// that applies the operation adds them to the stream itself.
    pub transitions: Vec<Transition>,
    /// The task of a loop that was ended because it made no progress. Only a bug of the queue
    /// causes that: an index that is broken.
    pub stuck: Option<&'static str>,
}

impl Effects {
    /// The messages to waiting clients and the event stream, to add to them.
    pub fn told_mut(&mut self) -> &mut Told {
        self.told.get_or_insert_default()
    }
}
