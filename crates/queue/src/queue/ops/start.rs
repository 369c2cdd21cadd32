//! How a message begins: pending, or held by a batch, by its children or until a signal.

use crate::message::after::Park;
use crate::message::state::Reason;
use crate::message::Choices;
use crate::queue::batches::Hold;
use crate::queue::Queue;
use crate::{GroupIx, Millis, Seq};

/// How a new message begins.
#[derive(Debug, Clone, Copy)]
pub(super) enum Start {
    /// Nothing holds it.
    Pending,
    /// Its batch holds it, or makes it die at once.
    Batch(Hold),
    /// Its children hold it.
    Children,
    /// It is parked.
    Parked(Park),
}

impl Queue {
    /// How a message with these options begins. Where more than one holds it, the first of
    /// its batch, its children and its signal does. O(log n).
    pub(super) fn start_of(&self, choices: &Choices) -> Start {
        let batching = choices.batching();
        match batching.map_or(Hold::Free, |batching| self.hold_of(batching)) {
            Hold::Free => {}
            hold => return Start::Batch(hold),
        }
        match batching.and_then(|batching| batching.park) {
            _ if choices.children().is_some() => Start::Children,
            Some(park) => Start::Parked(park),
            None => Start::Pending,
        }
    }

    /// The hidden group of a message that has limits but no group; `None` if it has no limits.
    pub(super) fn hidden_group_of(&mut self, choices: &Choices) -> Option<GroupIx> {
        let limited = choices.limited()?;
        Some(self.state.groups.find_or_add_hidden(&limited.key()))
    }

    /// Counts a new message at its limits, its batches and its parent.
    pub(super) fn count_rare(&mut self, seq: Seq, choices: &Choices, start: Start) {
        if choices.limited().is_some() {
            self.use_limits();
        }
        let batching = choices.batching();
        if let Some(batching) = batching.filter(|batching| batching.is_of_batches()) {
            let hold = match start {
                Start::Batch(hold) => hold,
                _ => Hold::Free,
            };
            self.enter_batches(seq, batching, hold);
        }
        if let Some(parent) = choices.parent() {
            self.enter_siblings(seq, parent);
        }
    }

    /// Enters a new message that is held in the indexes. It dies at once if its EXPIREAT has
    /// passed, or if its batch demands it.
    pub(super) fn enter_start(&mut self, seq: Seq, choices: &Choices, start: Start, now: Millis) {
        let group = self.state.store.get(seq).map_or(GroupIx::NONE, |m| m.group);
        match start {
            Start::Children => {
                self.hold_by_children(seq);
            }
            Start::Parked(park) => self.park(seq, park, now),
            Start::Pending | Start::Batch(_) => {}
        }
        if choices.expire_at().is_some_and(|at| at <= now) {
            self.leave_held(seq);
            self.die(seq, Reason::Expired, now);
        } else if let Start::Batch(Hold::Dies(batch)) = start {
            self.die_of_batch(seq, batch, now);
        }
        self.refresh(group, now, self.join(now));
    }
}
