//! Keeps payloads packed while their messages rest. No client sees it, so each server does it by
//! itself, in its own time.

use crate::message::store::{Step, Sums};
use crate::op::Moment;
use crate::queue::Queue;

impl Queue {
    /// Whether [`Queue::pack`] may have work, now or later. O(1).
    #[inline]
    pub fn has_unpacked(&self) -> bool {
        self.state.store.has_unpacked()
    }

    /// Packs some payloads: about 16 KiB of them, or one.
    pub fn pack(&mut self, moment: Moment) -> Step {
        let now = self.now(moment);
        self.state.store.pack(now)
    }

    /// Goes on with a dictionary that was trained from the samples of [`Step::Train`]; `None` if
    /// they have nothing in common.
    pub fn trained(&mut self, text: Option<&[u8]>) {
        self.state.store.trained(text);
    }

    /// How much packing saves.
    pub fn packing_sums(&self) -> Sums {
        self.state.store.packing_sums()
    }
}
