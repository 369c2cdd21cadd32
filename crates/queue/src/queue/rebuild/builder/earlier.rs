//! Operations that an earlier version had begun and not completed when it wrote a snapshot.

use crate::index::ready_line::Join;
use crate::op::Effects;
use crate::{GroupIx, Queue, Seq};

/// What earlier versions had begun and not completed. It is completed when all else is
/// built.
#[derive(Debug, Default)]
pub(super) struct Earlier {
    /// When and by which command messages were redriven.
    pub(super) redriven: Join,
    /// Those of them that are still among the dead: whether each is grouped, its priority
    /// and its number, the order in which they were to be made pending.
    pub(super) redriving: Vec<(bool, i8, Seq)>,
    /// When and by which command messages were purged of which their groups had not heard.
    pub(super) purged: Join,
    /// Those groups.
    pub(super) purged_of: Vec<GroupIx>,
}

impl Earlier {
    /// Completes what was redriven and purged, as of when that was.
    pub(super) fn complete(mut self, queue: &mut Queue) {
        self.redriving.sort_unstable();
        for (_, _, seq) in self.redriving {
            queue.redrive_one(seq, self.redriven);
        }
        self.purged_of.dedup();
        for ix in self.purged_of.into_iter().filter(|ix| ix.is_some()) {
            queue.refresh(ix, queue.last, self.purged);
        }
        queue.effects = Effects::default();
    }
}
