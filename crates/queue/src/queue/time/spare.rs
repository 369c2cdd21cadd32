//! Leases that are spared: they do not end yet, although their time is over.
//!
//! After the server stood still or was down, the consumers that were in time all along
//! must get the chance to say so.

use std::ops::Bound;

use crate::message::state::State;
use crate::queue::Queue;
use crate::settings::Clock;
use crate::Millis;

impl Queue {
    /// Whether any lease ends before this time (Unix ms). O(1).
    pub fn has_lease_before(&self, time: Millis) -> bool {
        self.state
            .leases
            .first_end()
            .is_some_and(|(end, _)| end < time)
    }

    /// Lets the leases that would end before `to` (Unix ms) end at `to`. Does nothing
    /// with a manual clock, which does not go on while the server stands still. O(k) for
    /// the k leases that are in the order of their ends, O(k log n) for others.
    pub fn spare_leases(&mut self, to: Millis) {
        if self.state.clock != Clock::Server || !self.has_lease_before(to) {
            return;
        }
        if !self.notes.pages.is_empty() {
            let ends = self.state.leases.by_end(Bound::Unbounded);
            for place in ends.take_while(|(end, _)| *end < to) {
                self.notes
                    .pages
                    .note(&[State::Running], place, self.state.last);
            }
        }
        self.state.leases.end_not_before(to);
        self.wake_by(to);
        self.changed();
    }
}
