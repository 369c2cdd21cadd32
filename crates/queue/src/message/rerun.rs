//! A message that waits for the end of a run, to be sent under the id of the message that runs.

use super::due_time::DueTime;
use super::Choices;
use crate::collections::footprint::allocated;
use crate::Millis;

/// A message that was sent with REPLACE RERUN while the one with its id was running.
#[derive(Debug, Clone, PartialEq)]
pub struct Rerun {
    /// Its payload.
    pub payload: Box<[u8]>,
    /// When it becomes due, as seen from the end of the run.
    pub due: DueTime,
    /// Its group, if it has one.
    pub group: Option<Box<[u8]>>,
    /// Its priority.
    pub priority: i8,
    /// All its other options.
    pub choices: Choices,
    /// When the first of the sends was done (Unix ms) that replaced each other while the
    /// message was running. Its MAXWAIT counts from then on.
    pub first_at: Millis,
}

impl Rerun {
    /// Bytes allocated, including its own allocation.
    pub fn heap_bytes(&self) -> usize {
        let group = self.group.as_ref();
        allocated(size_of::<Rerun>())
            + allocated(self.payload.len())
            + group.map_or(0, |group| allocated(group.len()))
            + self.choices.heap_bytes()
    }
}
