//! Where a message stands: as it is stored, as a client sees it, and why it
//! died.

/// Where a message stands, as it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Place {
    /// Its due time lies ahead.
    Delayed = 0,
    /// Due; whether it is ready or blocked is a matter of its group.
    Due = 1,
    /// A delivery failed and its backoff is not over.
    Retry = 2,
    /// Leased.
    Running = 3,
    /// Acked; the record is kept.
    Finished = 4,
    /// Out of retries, rejected or expired.
    Dead = 5,
    /// Cancelled; the record is kept.
    Cancelled = 6,
}

impl Place {
    /// Whether a message here waits for a delivery.
    pub fn is_pending(self) -> bool {
        matches!(self, Place::Delayed | Place::Due | Place::Retry)
    }

    /// Whether a message here has come to an end.
    pub fn is_ended(self) -> bool {
        matches!(self, Place::Finished | Place::Dead | Place::Cancelled)
    }

    /// The place with this number, as stored in a snapshot.
    pub fn from_u8(n: u8) -> Option<Place> {
        Some(match n {
            0 => Place::Delayed,
            1 => Place::Due,
            2 => Place::Retry,
            3 => Place::Running,
            4 => Place::Finished,
            5 => Place::Dead,
            6 => Place::Cancelled,
            _ => return None,
        })
    }
}

/// The state of a message, as a client sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// Its due time lies ahead.
    Delayed,
    /// Due and deliverable as far as its group goes.
    Ready,
    /// Due, but its group can give nothing now.
    Blocked,
    /// A delivery failed; waits for its backoff.
    Retry,
    /// Leased.
    Running,
    /// Acked.
    Finished,
    /// Given up.
    Dead,
    /// Cancelled.
    Cancelled,
}

impl State {
    /// All states, in the order of a message's life.
    pub const ALL: [State; 8] = [
        State::Delayed,
        State::Ready,
        State::Blocked,
        State::Retry,
        State::Running,
        State::Finished,
        State::Dead,
        State::Cancelled,
    ];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            State::Delayed => "delayed",
            State::Ready => "ready",
            State::Blocked => "blocked",
            State::Retry => "retry",
            State::Running => "running",
            State::Finished => "finished",
            State::Dead => "dead",
            State::Cancelled => "cancelled",
        }
    }

    /// The coarser word: pending, running, finished, error or cancelled.
    pub fn status(self) -> &'static str {
        match self {
            State::Delayed | State::Ready | State::Blocked | State::Retry => "pending",
            State::Running => "running",
            State::Finished => "finished",
            State::Dead => "error",
            State::Cancelled => "cancelled",
        }
    }
}

/// Why a message died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Reason {
    /// It failed more often than RETRIES forgives.
    Retries = 1,
    /// A consumer rejected it for good.
    Rejected = 2,
    /// It outlived its TTL.
    Expired = 3,
}

impl Reason {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Retries => "retries",
            Reason::Rejected => "rejected",
            Reason::Expired => "expired",
        }
    }

    /// The reason with this number, as stored in a snapshot.
    pub fn from_u8(n: u8) -> Option<Reason> {
        Some(match n {
            1 => Reason::Retries,
            2 => Reason::Rejected,
            3 => Reason::Expired,
            _ => return None,
        })
    }
}
