//! COPY of a queue to another key.

use crate::seeded::{seeded, Bug};

use crate::collections::rare::Rare;
use crate::op::Effects;
use crate::queue::notes::Notes;
use crate::queue::Queue;

impl Queue {
    /// Copies the queue for another key. No message runs in the copy: messages that were
    /// running are ready again, as after NACK SILENT. O(n).
    pub fn copy(&self) -> Queue {
        let mut copy = Queue {
            state: self.state.clone(),
            indexes: self.indexes.clone(),
            notes: Notes::default(),
        };
        let now = copy.state.last;
        copy.state.ticket += 1;
        if !seeded(Bug::CopyRuns) {
            copy.release_all(now);
        }
        copy.stay_all(now);
        copy.send_reruns(now);
        copy.state.consumers.forget_tokens();
        if let Some(seldom) = copy.state.seldom.used_mut() {
            seldom.old_ends = Rare::default();
            seldom.unsettled = None;
        }
        copy.settle_some(usize::MAX);
        // A child counts once, and not again in a copy.
        copy.cut_parents();
        copy.notes.effects = Effects::default();
        copy
    }
}
