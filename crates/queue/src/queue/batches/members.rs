//! Counting the messages of a named batch.
//!
//! A message that is in a batch passes through one of the `member_...` methods
//! wherever it changes its state.

use crate::collections::ordered::OrderedSet;
use crate::index::batches::{NamedBatch, Released};
use crate::message::state::StoredState;
use crate::queue::Queue;
use crate::{Millis, Seq, MAX_EXACT};

/// A count of ended messages with one more. A dump may say that it is at its end.
fn one_more(count: u64) -> u64 {
    count.saturating_add(1).min(MAX_EXACT)
}

impl Queue {
    /// Applies a change to the batch of a message, if it is in one. Returns the
    /// number of the batch.
    pub(super) fn change_batch_of(
        &mut self,
        seq: Seq,
        change: impl FnOnce(&mut NamedBatch),
    ) -> Option<Seq> {
        let batches = self.state.seldom.batches_mut()?;
        let batch = batches.members.batch_of(seq)?;
        change(batches.get_mut(batch)?);
        Some(batch)
    }

    /// A message is delivered, and runs.
    pub(in crate::queue) fn member_started(&mut self, seq: Seq) {
        self.change_batch_of(seq, |batch| {
            batch.counts.pending -= 1;
            batch.counts.running += 1;
        });
    }

    /// A message runs no longer. It counts as pending until it has ended.
    pub(in crate::queue) fn member_stopped(&mut self, seq: Seq) {
        self.change_batch_of(seq, |batch| {
            batch.counts.running -= 1;
            batch.counts.pending += 1;
        });
    }

    /// A dead message is pending again.
    pub(in crate::queue) fn member_redriven(&mut self, seq: Seq) {
        self.change_batch_of(seq, |batch| {
            batch.counts.dead -= 1;
            batch.counts.pending += 1;
        });
    }

    /// Notes that a message that is pending, or dead and cancelled, ends at `at`.
    pub(in crate::queue) fn member_ended(&mut self, seq: Seq, stored: StoredState, at: Millis) {
        let was_dead = self
            .state
            .store
            .get(seq)
            .is_some_and(|message| message.stored == StoredState::Dead);
        let batch = self.change_batch_of(seq, |batch| {
            let counts = &mut batch.counts;
            match was_dead {
                true => counts.dead -= 1,
                false => counts.pending -= 1,
            }
            match stored {
                StoredState::Finished => counts.finished = one_more(counts.finished),
                StoredState::Cancelled => counts.cancelled = one_more(counts.cancelled),
                _ => counts.dead += 1,
            }
        });
        let (Some(batch), Some(batches)) = (batch, self.state.seldom.batches_mut()) else {
            return;
        };
        if let Some(named) = batches.get_mut(batch) {
            let counts = named.counts;
            let [_, _, dies] = &mut named.held;
            if stored.is_dead() && !dies.is_empty() {
                let dies = std::mem::take(dies);
                batches.released.push_back(Released {
                    batch,
                    at,
                    dies: true,
                    counts,
                    held: [OrderedSet::new(), OrderedSet::new(), dies],
                });
            }
        }
        batches.touch(batch, at);
        if let Some(message) = self.state.store.get_mut(seq) {
            // If no record is kept, the message is removed next, and has then ended
            // already.
            message.stored = stored;
        }
    }

    /// A message is removed. If it had not ended, it has now.
    pub(in crate::queue) fn member_gone(&mut self, seq: Seq) {
        let message = self.state.store.get(seq);
        let stored = message.map(|message| message.stored);
        let is_leased = message.is_some_and(|message| message.receipt() != 0);
        let at = self.state.last;
        let Some(batches) = self.state.seldom.batches_mut() else {
            return;
        };
        let Some(batch) = batches.members.remove(seq) else {
            return;
        };
        if let Some(named) = batches.get_mut(batch) {
            named.members -= 1;
            match stored {
                Some(StoredState::Finished | StoredState::Cancelled) | None => {}
                Some(StoredState::Dead | StoredState::Leaving) => named.counts.dead -= 1,
                Some(StoredState::Running) if is_leased => named.counts.running -= 1,
                Some(_) => named.counts.pending -= 1,
            }
        }
        batches.touch(batch, at);
    }
}
