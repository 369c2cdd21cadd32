//! PAUSE: stops the deliveries of a queue or of a group.

use crate::op::Done;
use crate::queue::Queue;
use crate::{GroupIx, Millis, MAX_EXACT, NEVER};

impl Queue {
    /// Pauses deliveries of the queue or of a group, for `ms` or without end.
    pub(in crate::queue) fn pause(
        &mut self,
        group: Option<&[u8]>,
        ms: Option<Millis>,
        now: Millis,
    ) -> Done {
        let until = ms.map_or(NEVER, |ms| now.saturating_add(ms).min(MAX_EXACT));
        match group {
            None => self.paused_until = Some(until),
            Some(name) => {
                let ix = self.group_to_set(name);
                if let Some(group) = self.groups.get_mut(ix) {
                    group.ext_mut().paused_until = Some(until);
                }
                self.refresh(ix, now, self.join(now));
            }
        }
        self.wake_by(until);
        self.changed();
        Done::Ok
    }

    /// The group with this name, created if it does not exist. A group that a purge
    /// has emptied is removed first and created anew.
    pub(in crate::queue) fn group_to_set(&mut self, name: &[u8]) -> GroupIx {
        if let Some(ix) = self.groups.find(name) {
            self.heed_purges(ix);
        }
        self.groups.find_or_add(name)
    }
}
