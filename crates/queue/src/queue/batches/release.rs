//! Releasing held messages, or letting them die, when the batch that they wait for has
//! ended.

use crate::collections::ordered::OrderedSet;
use crate::index::batches::Released;
use crate::message::after::Counts;
use crate::queue::Queue;
use crate::seeded::{seeded, Bug};
use crate::{Millis, Seq, IS_SMALL};

/// Maximum number of held messages that one operation or event releases. The timer
/// releases the others, in slices.
const AT_ONCE: usize = if IS_SMALL { 64 } else { 512 };

impl Queue {
    /// Releases the messages that are held no longer, and lets some of them die. A few at once; the
    /// timer does the rest. Returns whether there were any.
    pub(in crate::queue) fn release_some(&mut self) -> bool {
        self.settle_some(AT_ONCE) > 0
    }

    /// Releases up to `most` messages that are held no longer. Returns how many.
    pub(in crate::queue) fn settle_some(&mut self, most: usize) -> usize {
        let mut done = 0;
        loop {
            self.close_touched();
            let Some(batches) = self.state.seldom.batches_mut() else {
                return done;
            };
            let Some(first) = batches.released.front_mut() else {
                break;
            };
            if done == most {
                self.wake_by(0);
                return done;
            }
            match first.pop_first() {
                None => drop(batches.released.pop_front()),
                Some(seq) => {
                    done += 1;
                    let (batch, at) = (first.batch, first.at);
                    let (dies, counts) = (first.dies, first.counts);
                    self.exit_held_by(seq, Some(batch));
                    self.let_go_of_batch(seq, at, dies, counts);
                }
            }
        }
        self.drop_batches_if_empty();
        done
    }

    fn drop_batches_if_empty(&mut self) {
        if self
            .state
            .seldom
            .batches
            .as_ref()
            .is_some_and(|all| all.is_empty())
        {
            self.state.seldom.batches = None;
        }
    }

    /// Finds the messages that are held no longer, and leaves their release to the timer.
    pub(in crate::queue) fn close_batches(&mut self) {
        if self.state.seldom.has_batches() {
            self.close_touched();
            if !seeded(Bug::EmptyBatchesStay) {
                self.drop_batches_if_empty();
            }
        }
    }

    /// Moves messages that their batches hold no longer to the list of released ones, and
    /// closes batches. O(1) for each batch.
    fn close_touched(&mut self) {
        let Some(batches) = self.state.seldom.batches_mut() else {
            return;
        };
        while let Some((batch, at)) = batches.touched.pop() {
            let Some(named) = batches.get_mut(batch) else {
                continue;
            };
            let counts = named.counts;
            if counts.live() == 0 {
                let held = match counts.dead {
                    0 => std::mem::take(&mut named.held),
                    _ => {
                        let [_, goes, _] = &mut named.held;
                        let goes = std::mem::take(goes);
                        [OrderedSet::new(), goes, OrderedSet::new()]
                    }
                };
                if held.iter().any(|held| !held.is_empty()) {
                    batches.released.push_back(Released {
                        batch,
                        at,
                        dies: false,
                        counts,
                        held,
                    });
                }
            }
            batches.settle(batch);
        }
    }

    /// Lets a message die whose batch has a dead one already when it is sent.
    pub(in crate::queue) fn die_of_batch(&mut self, seq: Seq, batch: Seq, now: Millis) {
        let named = self
            .state
            .seldom
            .batches
            .as_ref()
            .and_then(|batches| batches.get(batch));
        let counts = named.map_or(Counts::default(), |named| named.counts);
        self.leave_held(seq);
        self.let_go_of_batch(seq, now, true, counts);
    }

    /// Whether messages are held no longer, or are to die, and have not been released yet.
    pub(in crate::queue) fn has_released(&self) -> bool {
        let batches = self.state.seldom.batches.as_ref();
        batches.is_some_and(|batches| !batches.released.is_empty())
            || !self.indexes.held.dying.is_empty()
    }
}
