//! What came of an operation for everyone else: replicas, listeners, those who
//! wait.

use crate::state::State;

/// Kinds of things that happened, for those who listen; a set.
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
    /// A lease ran out.
    pub const TIMEOUT: Happened = Happened(1 << 5);
    /// A message died.
    pub const DEAD: Happened = Happened(1 << 6);
    /// A message was cancelled.
    pub const CANCELLED: Happened = Happened(1 << 7);

    /// Adds a kind.
    pub fn add(&mut self, kind: Happened) {
        self.0 |= kind.0;
    }

    /// Whether a kind is among them.
    pub fn has(self, kind: Happened) -> bool {
        self.0 & kind.0 != 0
    }

    /// Whether nothing happened.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// How a message that someone waits for has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// Its id.
    pub id: Box<[u8]>,
    /// Its state and the result or error; `None` when it was removed.
    pub end: Option<(State, Option<Box<[u8]>>)>,
}

/// What the surroundings must know of what happened since they last asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Effects {
    /// Something is different, so that a replica must be told.
    pub changed: bool,
    /// Something that a client can see is different.
    pub visible: bool,
    /// What happened.
    pub happened: Happened,
    /// Ends of messages that someone waits for.
    pub endings: Vec<Ending>,
}
