//! PAUSE: stops the deliveries of a queue or of a group.

use crate::op::Done;
use crate::queue::Queue;
use crate::{Millis, MAX_EXACT, NEVER};

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
                let ix = self.groups.find_or_add(name);
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
}
