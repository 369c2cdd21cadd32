//! The reports to parents about their children.

use std::borrow::Cow;

use crate::message::kin::Delta;

/// The children of messages of a queue that have ended or were removed in another queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted<'a> {
    /// The key of the queue of the children.
    pub from: Cow<'a, [u8]>,
    /// The changes of counts, one for each parent and ONDEAD.
    pub of: Vec<CountedOne<'a>>,
}

/// The changes among the children of one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountedOne<'a> {
    /// The id of the parent.
    pub id: Cow<'a, [u8]>,
    /// The changes of the counts.
    pub delta: Delta,
    /// Whether a parent that dies dies in a separate event. In a long row of parents that
    /// are children of each other, no operation must let all of them die.
    pub dies_later: bool,
}
