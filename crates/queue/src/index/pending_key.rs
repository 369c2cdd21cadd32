//! The key by which the index of pending messages finds one.

use crate::{Millis, Seq};

/// The pending key of a message: the properties that the index needs.
#[derive(Debug, Clone, Copy)]
pub struct PendingKey {
    /// The message's number.
    pub seq: Seq,
    /// When it is due.
    pub due: Millis,
    /// Lower numbers are delivered first.
    pub priority: i8,
    /// Whether it has a group.
    pub grouped: bool,
}
