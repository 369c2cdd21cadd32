//! The bounds of the numbers of snapshots and log entries. A reader reads each number by its bound,
//! and the tests forge each at its bound and beyond.

use crate::effect::MOST_EFFECTS;
use crate::limits::{Invalid, MAX_COUNT, MAX_ERRORS};
use crate::message::kin::MOST_QUEUES;
use crate::message::limited::MAX_LIMITS;
use crate::message::packing::{DICTIONARIES, LARGEST};
use crate::named_limits::MAX_WINDOWS;
use crate::{MAX_EXACT, NEVER};

/// The range of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// The least that it may be.
    pub least: u64,
    /// The most that it may be.
    pub most: u64,
    /// Whether it may be [`NEVER`], too.
    pub or_never: bool,
    /// The error if it is neither.
    pub error: &'static str,
}

const fn up_to(most: u64, error: &'static str) -> Bound {
    Bound {
        least: 0,
        most,
        or_never: false,
        error,
    }
}

/// A time in Unix ms, a duration in ms, a receipt, the number of a message, a size, a cost, a
/// limit, or the distance of two of these.
pub const EXACT: Bound = up_to(MAX_EXACT, "a number must be at most 2^53-1");
/// One of these that must not be 0.
pub const POSITIVE: Bound = Bound {
    least: 1,
    ..up_to(MAX_EXACT, "a number must be 1 to 2^53-1")
};
/// A time in Unix ms that may never come.
pub const TIME: Bound = Bound {
    or_never: true,
    ..up_to(MAX_EXACT, "a time must be at most 2^53-1, or never")
};
/// How often something happened to a message.
pub const SMALL: Bound = up_to(u32::MAX as u64, "a count must be at most 2^32-1");
/// A number that may be larger than it can be used, such as a statistic, which stops at 2^53-1:
/// that is no reason to refuse a queue.
pub const CUT: Bound = up_to(u64::MAX, "");
/// Which parts follow, as bits. The reader refuses those that it does not know.
pub const PARTS: Bound = up_to(u64::MAX, "");
/// The numbers of messages that a search has found.
pub const FOUND: Bound = up_to(MAX_COUNT, "a FIND must change at most 10000 messages");
/// The failed attempts that a message keeps.
pub const ERRORS: Bound = Bound {
    least: 1,
    ..up_to(
        MAX_ERRORS as u64,
        "a message keeps none or too many failed attempts",
    )
};
/// The limits that a message names.
pub const LIMITS: Bound = up_to(MAX_LIMITS as u64, "LIMITS must name at most 8 limits");
/// The effects of one acknowledgement.
pub const EFFECTS: Bound = up_to(MOST_EFFECTS as u64, "too many effects were applied");
/// The windows of a limit.
pub const WINDOWS: Bound = up_to(MAX_WINDOWS as u64, "a limit must have at most 4 windows");
/// The queues of children that a parent remembers.
pub const QUEUES: Bound = up_to(MOST_QUEUES as u64, "a parent remembers too many queues");

/// The dictionaries of a queue, from 0.
pub const DICTIONARY: Bound = up_to(DICTIONARIES as u64 - 1, "a queue has too many dictionaries");
/// One more than the number of a dictionary; 0 for none.
pub const DICTIONARY_OR_NONE: Bound =
    up_to(DICTIONARIES as u64, "a queue has too many dictionaries");
/// The length of a payload that is packed.
pub const PACKED: Bound = up_to(
    LARGEST as u64,
    "a packed payload must be at most 65535 bytes long",
);

impl Bound {
    /// Returns a number that is within the bound.
    #[inline]
    pub fn check(&self, n: u64) -> Result<u64, Invalid> {
        match self.least <= n && n <= self.most || self.or_never && n == NEVER {
            true => Ok(n),
            false => Err(Invalid(self.error)),
        }
    }
}
