//! UNSCHEDULE: removes a schedule.

use crate::op::Done;
use crate::queue::Queue;

impl Queue {
    /// Removes a schedule. Returns whether there was one.
    pub(in crate::queue) fn unschedule(&mut self, name: &[u8]) -> Done {
        let has_it = self.state.seldom.schedules.get(name).is_some();
        let removed = has_it && self.state.seldom.schedules.remove(name);
        self.notes.effects.changed |= removed;
        self.notes.effects.visible |= removed;
        Done::Flag(removed)
    }
}
