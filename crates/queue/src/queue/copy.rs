//! COPY of a queue to another key.

use crate::seeded::{seeded, Bug};
use hashbrown::HashSet;

use crate::op::Effects;
use crate::queue::inspect::pages::AllPages;
use crate::queue::Queue;

impl Queue {
    /// Copies the queue for another key. No message runs in the copy: messages that were
    /// running are ready again, as after NACK SILENT. O(n).
    pub fn copy(&self) -> Queue {
        let mut copy = self.clone();
        copy.watched = HashSet::default();
        copy.pages = AllPages::default();
        copy.ahead = None;
        let now = copy.last;
        copy.ticket += 1;
        if !seeded(Bug::CopyRuns) {
            copy.release_all(now);
        }
        copy.stay_all(now);
        copy.send_reruns(now);
        copy.consumers.forget_tokens();
        copy.old_ends.clear();
        copy.settle_some(usize::MAX);
        // A child counts once, and not again in a copy.
        copy.cut_parents();
        copy.unsettled = None;
        copy.effects = Effects::default();
        copy
    }
}
