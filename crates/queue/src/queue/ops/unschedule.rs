//! UNSCHEDULE: removes a schedule.

use crate::op::Done;
use crate::queue::Queue;

impl Queue {
    /// Removes a schedule. Returns whether there was one.
    pub(in crate::queue) fn unschedule(&mut self, name: &[u8]) -> Done {
        let removed = self.schedules.remove(name);
        self.effects.changed |= removed;
        self.effects.visible |= removed;
        Done::Flag(removed)
    }
}
