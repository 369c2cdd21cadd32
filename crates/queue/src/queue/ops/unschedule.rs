//! UNSCHEDULE: removes a schedule.

use crate::op::Done;
use crate::queue::Queue;

impl Queue {
    /// Removes a schedule. Returns whether there was one.
    pub(in crate::queue) fn unschedule(&mut self, name: &[u8]) -> Done {
        let removed = self.state.schedules.remove(name);
        self.notes.effects.changed |= removed;
        self.notes.effects.visible |= removed;
        Done::Flag(removed)
    }
}
