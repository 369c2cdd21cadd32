//! RESUME: continues the deliveries of a queue or of a group.

use crate::groups::group::Group;
use crate::op::Done;
use crate::queue::Queue;
use crate::seeded::{seeded, Bug};
use crate::{GroupIx, Millis};

impl Queue {
    /// Ends a pause, and closes the breaker of the group or of the ungrouped messages.
    /// For a group, also ends the holds of dead messages.
    pub(in crate::queue) fn resume(&mut self, group: Option<&[u8]>, now: Millis) -> Done {
        match group {
            None => {
                let closed = self.close_breaker(GroupIx::NONE);
                if self.state.paused_until.take().is_some() || closed {
                    self.changed();
                }
            }
            Some(name) => {
                if let Some(ix) = self.state.groups.find(name) {
                    let group = self.state.groups.get_mut(ix);
                    let ext = group.and_then(Group::ext_if_any);
                    let paused = ext.is_some_and(|ext| ext.paused_until.take().is_some());
                    let closed = self.close_breaker(ix);
                    if self.end_holds(ix) || paused || closed {
                        self.refresh(ix, now, self.join(now));
                        if !seeded(Bug::ResumeUnlogged) {
                            self.changed();
                        }
                    }
                }
            }
        }
        Done::Ok
    }
}
