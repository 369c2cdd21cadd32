//! The line in which those stand that can give.

use super::group::GroupIx;
use super::{Millis, Seq};

/// When and how something joined the line. Who joined in an earlier
/// millisecond stands before; within one, what time did stands before what
/// commands did, and what commands did in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Join {
    /// When.
    pub time: Millis,
    /// 0 where time did it, else the ticket of the command.
    pub ticket: u64,
}

/// A place in the line: one line per priority of what would be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LineKey {
    /// Priority of the message that would be given.
    pub priority: i8,
    /// When and how it joined.
    pub join: Join,
    /// The message it would have given then: those who joined together stand
    /// by the send order of their heads.
    pub seq: Seq,
    /// Who stands here; [`GroupIx::NONE`] for the ungrouped messages.
    pub group: GroupIx,
}
