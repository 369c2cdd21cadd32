//! PAUSE: stops the deliveries of a queue or of a group.

use crate::op::Done;
use crate::queue::Queue;
use crate::seeded::{seeded, Bug};
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
            None => self.state.paused_until = Some(until),
            Some(name) => {
                let ix = self.state.groups.find_or_add(name);
                if let Some(group) = self.state.groups.get_mut(ix) {
                    group.ext_mut().paused_until = Some(until);
                }
                if !seeded(Bug::PauseKeepsPlace) {
                    self.refresh(ix, now, self.join(now));
                }
            }
        }
        if !seeded(Bug::PauseWakesLate) {
            self.wake_by(until);
        }
        self.changed();
        Done::Ok
    }

    /// Pauses deliveries of the queue until `until`, unless they are paused for longer.
    pub(in crate::queue) fn extend_pause(&mut self, until: Millis) {
        self.state.paused_until = self.state.paused_until.max(Some(until));
        self.wake_by(until);
        self.changed();
    }

    /// Pauses deliveries of a group until `until`, unless they are paused for longer.
    /// The caller refreshes the group.
    pub(in crate::queue) fn extend_group_pause(&mut self, ix: GroupIx, until: Millis) {
        if let Some(group) = self.state.groups.get_mut(ix) {
            let ext = group.ext_mut();
            ext.paused_until = ext.paused_until.max(Some(until));
        }
        self.wake_by(until);
        self.changed();
    }
}
