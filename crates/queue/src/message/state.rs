//! The stored state of a message, the state that a client sees, and the reason of its
//! death.

/// The stored state of a message. The numbers up to 7 are part of the snapshot format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum StoredState {
    /// The message is not due yet.
    Delayed = 0,
    /// Due. Whether it is ready or blocked depends on its group.
    Due = 1,
    /// A delivery failed and the backoff has not ended.
    Retry = 2,
    /// Delivered and leased.
    Running = 3,
    /// Acked. The record is kept.
    Finished = 4,
    /// The message ran out of retries, was rejected, or expired.
    Dead = 5,
    /// Cancelled. The record is kept.
    Cancelled = 6,
    /// Messages of a batch for which it waits, or children, have not ended, or it is parked.
    Held = 7,
    /// Dead, and on its way to another queue (DEADTO): no id names it, and it is no record. No client
    /// ever sees it. A snapshot has it as a dead message with a flag.
    Leaving = 8,
}

impl StoredState {
    /// Whether a message in this state waits for a delivery, or to be released.
    pub fn is_pending(self) -> bool {
        matches!(
            self,
            StoredState::Delayed | StoredState::Due | StoredState::Retry | StoredState::Held
        )
    }

    /// Whether a message in this state has ended.
    pub fn is_ended(self) -> bool {
        matches!(
            self,
            StoredState::Finished
                | StoredState::Dead
                | StoredState::Cancelled
                | StoredState::Leaving
        )
    }

    /// Whether a message in this state has died.
    pub fn is_dead(self) -> bool {
        matches!(self, StoredState::Dead | StoredState::Leaving)
    }

    /// The stored state with this number in a snapshot; `None` if there is
    /// none.
    pub fn from_u8(n: u8) -> Option<StoredState> {
        Some(match n {
            0 => StoredState::Delayed,
            1 => StoredState::Due,
            2 => StoredState::Retry,
            3 => StoredState::Running,
            4 => StoredState::Finished,
            5 => StoredState::Dead,
            6 => StoredState::Cancelled,
            7 => StoredState::Held,
            _ => return None,
        })
    }
}

/// The state of a message, as a client sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// The message is not due yet.
    Delayed,
    /// The message is due, and its group does not keep it from being delivered.
    Ready,
    /// The message is due, but its group cannot deliver it now.
    Blocked,
    /// A delivery failed and the backoff has not ended.
    Retry,
    /// Delivered and leased.
    Running,
    /// Acked.
    Finished,
    /// Out of retries, rejected or expired.
    Dead,
    /// Cancelled.
    Cancelled,
    /// Messages of a batch for which it waits, or children, have not ended, or it waits for
    /// a signal.
    Held,
}

impl State {
    /// All states. Their order is part of the log format.
    pub const ALL: [State; 9] = [
        State::Delayed,
        State::Ready,
        State::Blocked,
        State::Retry,
        State::Running,
        State::Finished,
        State::Dead,
        State::Cancelled,
        State::Held,
    ];

    /// The name of the state in arguments and replies.
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
            State::Held => "held",
        }
    }

    /// The status of which the state is a finer form: pending, running,
    /// finished, error or cancelled.
    pub fn status(self) -> &'static str {
        match self {
            State::Delayed | State::Ready | State::Blocked | State::Retry | State::Held => {
                "pending"
            }
            State::Running => "running",
            State::Finished => "finished",
            State::Dead => "error",
            State::Cancelled => "cancelled",
        }
    }
}

/// The reason why a message died. The numbers are part of the snapshot format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Reason {
    /// The failures of the message exceeded RETRIES.
    Retries = 1,
    /// A consumer nacked the message with FATAL.
    Rejected = 2,
    /// The message outlived its TTL.
    Expired = 3,
    /// A message of a batch that it waited for died.
    Batch = 4,
    /// The message's leases ran out or were lost as often as MAXTIMEOUTS allows.
    Timeouts = 5,
    /// A child of the message died.
    Children = 6,
}

impl Reason {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Reason; 6] = [
        Reason::Retries,
        Reason::Rejected,
        Reason::Expired,
        Reason::Batch,
        Reason::Timeouts,
        Reason::Children,
    ];

    /// The name of the reason in replies.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Retries => "retries",
            Reason::Rejected => "rejected",
            Reason::Expired => "expired",
            Reason::Batch => "batch",
            Reason::Timeouts => "timeouts",
            Reason::Children => "children",
        }
    }

    /// The reason with this number in a snapshot; `None` if there is none.
    pub fn from_u8(n: u8) -> Option<Reason> {
        Some(match n {
            1 => Reason::Retries,
            2 => Reason::Rejected,
            3 => Reason::Expired,
            4 => Reason::Batch,
            5 => Reason::Timeouts,
            6 => Reason::Children,
            _ => return None,
        })
    }
}
