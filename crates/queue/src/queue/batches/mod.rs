//! Named batches: counting their messages, and releasing the messages that they hold.
//!
//! A message that is in a batch passes through one of the `member_...` methods wherever
//! it changes its state. The messages that it holds are not released there, but at the
//! end of the operation or the event ([`Queue::settle`]). So a batch that gets
//! another message before the operation ends is not closed in between.
//!
//! `members.rs` counts the messages, and `release.rs` finds out which of the held ones
//! (`queue/held/`) are to go. `rings.rs` finds batches that would wait for each other.

mod members;
mod release;
pub(super) mod rings;

use super::Queue;
use crate::message::after::{Batching, Counts};
use crate::{Millis, Seq};

/// Tells whether AFTER holds a message that is sent now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hold {
    /// The message is not held.
    Free,
    /// The message is held by the batch with this number.
    By(Seq),
    /// The message dies at once, because a message of the batch with this number is dead.
    Dies(Seq),
}

impl Queue {
    /// Returns whether AFTER holds a message that is sent now. O(log n).
    pub(super) fn hold_of(&self, batching: &Batching) -> Hold {
        let (Some(after), Some(batches)) = (&batching.after, &self.state.seldom.batches) else {
            return Hold::Free;
        };
        let Some(number) = batches.find(&after.batch) else {
            return Hold::Free;
        };
        match batches.get(number) {
            Some(batch) if after.on_fail.dies_of(&batch.counts) => Hold::Dies(number),
            Some(batch) if batch.holds(after.on_fail) => Hold::By(number),
            _ => Hold::Free,
        }
    }

    /// Counts one more message in the batch of this message. Returns the batch, for
    /// [`Queue::let_batch_close`]; `None` if it is in none.
    pub(super) fn keep_batch_open(&mut self, seq: Seq) -> Option<Seq> {
        self.change_batch_of(seq, |batch| batch.counts.pending += 1)
    }

    /// Ends the effect of [`Queue::keep_batch_open`].
    pub(super) fn let_batch_close(&mut self, batch: Seq, now: Millis) {
        let Some(batches) = self.state.seldom.batches_mut() else {
            return;
        };
        if let Some(named) = batches.get_mut(batch) {
            named.counts.pending -= 1;
        }
        batches.touch(batch, now);
    }

    /// Counts a new message in its batch, and makes it held if it waits for another
    /// one. `message` is in the store and in no index if it is held or dies.
    pub(super) fn enter_batches(&mut self, seq: Seq, batching: &Batching, hold: Hold) {
        let batches = self.state.seldom.batches.get_or_insert_default();
        if let Some(name) = &batching.batch {
            let batch = match batches.find(name) {
                Some(batch) => batch,
                None => {
                    batches.add(seq, name);
                    seq
                }
            };
            batches.members.insert(seq, batch);
            if let Some(named) = batches.get_mut(batch) {
                named.members += 1;
                named.counts.pending += 1;
            }
            batches.settle(batch);
        }
        let Some(after) = &batching.after else {
            return;
        };
        match hold {
            Hold::Free => {
                // A batch that the same operation has ended still has its counts.
                let named = batches.named(&after.batch).filter(|named| named.is_open());
                let counts = named.map_or(Counts::default(), |named| named.counts);
                self.keep_counts(seq, counts);
            }
            Hold::By(holder) | Hold::Dies(holder) => self.hold_by(seq, holder),
        }
        if self
            .state
            .seldom
            .batches
            .as_ref()
            .is_some_and(|batches| batches.is_empty())
        {
            self.state.seldom.batches = None;
        }
    }
}
