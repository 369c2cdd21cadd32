//! A group as a snapshot has it.

use super::SavedPosition;
use crate::groups::breaker::Circuit;
use crate::groups::group::GroupSettings;
use crate::{Millis, Seq};

/// A group of a snapshot.
#[derive(Debug, Clone, Default)]
pub struct GroupPart {
    /// Settings made by GROUPSET.
    pub settings: Option<Box<GroupSettings>>,
    /// End of the pause in Unix ms; NEVER for a pause without end.
    pub paused_until: Option<Millis>,
    /// Dead messages that hold the group: numbers and ids.
    pub held_by: Vec<(Seq, Box<[u8]>)>,
    /// Position of the group in the ready line, if it can give.
    pub line: Option<SavedPosition>,
    /// Messages given in the present turn.
    pub turn: u64,
    /// When the group must be checked again although nothing happens to it, in Unix
    /// ms.
    pub wake: Option<Millis>,
    /// Its breaker, unless that is closed and remembers no failure.
    pub breaker: Option<Circuit>,
    /// Whether it is the hidden group of messages with the same limits.
    pub is_hidden: bool,
    /// The limit for which it waits, and the cost of its next message for the limit.
    pub home: Option<(Box<[u8]>, u64)>,
}
