//! GROUPSET: the settings of one group.

use crate::op::{Done, GroupChanges};
use crate::queue::Queue;
use crate::seeded::{seeded, Bug};
use crate::Millis;

impl Queue {
    /// Changes the settings of a group.
    pub(in crate::queue) fn set_group(
        &mut self,
        name: &[u8],
        changes: &GroupChanges,
        now: Millis,
    ) -> Done {
        let ix = self.state.groups.find_or_add(name);
        if let Some(group) = self.state.groups.get_mut(ix) {
            let ext = group.ext_mut();
            let mut settings = ext.settings.take().unwrap_or_default();
            settings.weight = match changes.weight {
                // 0 stands for the default weight, so that a group with default
                // settings need not be remembered.
                Some(1) => 0,
                weight => weight.unwrap_or(settings.weight),
            };
            settings.concurrency = changes.concurrency.unwrap_or(settings.concurrency);
            if let Some(rate) = changes.rate {
                settings.rate = rate;
                if rate.is_none() {
                    settings.window.clear();
                }
            }
            if *settings != Default::default() {
                ext.settings = Some(settings);
            }
        }
        if !seeded(Bug::GroupSetKeepsPlace) {
            self.refresh(ix, now, self.join(now));
        }
        self.changed();
        Done::Ok
    }
}
