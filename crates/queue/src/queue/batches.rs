//! Named batches: counting their messages, and releasing what they hold.
//!
//! A message that is in a batch passes through one of the `member_...` methods
//! wherever it changes its state. What it holds is not released there, but when the
//! operation or the event is done ([`Queue::settle_batches`]). So a batch that gets
//! another message before the operation ends is not closed in between.

use super::moves::expiry;
use super::Queue;
use crate::collections::ordered::OrderedSet;
use crate::index::batches::{NamedBatch, Released};
use crate::index::ready_line::Join;
use crate::message::after::{Batching, Counts};
use crate::message::state::{Reason, StoredState};
use crate::message::Message;
use crate::{GroupIx, Millis, Seq, IS_SMALL};

/// Maximum number of held messages that one operation or event releases. The timer
/// releases the others, in slices.
const AT_ONCE: usize = if IS_SMALL { 64 } else { 512 };

/// Tells whether AFTER holds a message that is sent now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hold {
    /// It is not held.
    Free,
    /// It is held by the batch with this number.
    By(Seq),
    /// It dies at once, because a message of the batch with this number is dead.
    Dies(Seq),
}

impl Queue {
    /// Returns whether AFTER holds a message that is sent now. O(log n).
    pub(super) fn hold_of(&self, batching: &Batching) -> Hold {
        let (Some(after), Some(batches)) = (&batching.after, &self.batches) else {
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

    /// Counts one message more in the batch of this one. Returns the batch, for
    /// [`Queue::let_batch_close`]; `None` if it is in none.
    pub(super) fn keep_batch_open(&mut self, seq: Seq) -> Option<Seq> {
        self.change_batch_of(seq, |batch| batch.counts.pending += 1)
    }

    /// Ends what [`Queue::keep_batch_open`] began.
    pub(super) fn let_batch_close(&mut self, batch: Seq, now: Millis) {
        let Some(batches) = &mut self.batches else {
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
        let batches = self.batches.get_or_insert_default();
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
                let named = batches.named(&after.batch);
                let counts = named.map_or(Counts::default(), |named| named.counts);
                self.keep_counts(seq, counts);
            }
            Hold::By(holder) | Hold::Dies(holder) => self.hold_by(seq, holder),
        }
        if self
            .batches
            .as_ref()
            .is_some_and(|batches| batches.is_empty())
        {
            self.batches = None;
        }
    }

    /// Enters a held message in the indexes.
    pub(super) fn hold_by(&mut self, seq: Seq, holder: Seq) {
        let after = self.store.get(seq).and_then(Message::after);
        let on_fail = after.map(|after| after.on_fail as usize);
        let named = self.batches.as_mut().and_then(|b| b.get_mut(holder));
        let held = named
            .zip(on_fail)
            .and_then(|(n, kind)| n.held.get_mut(kind));
        if let Some(held) = held {
            held.insert(seq, ());
            self.index_held(seq, holder);
        }
    }

    /// Enters a held message, which its holder knows, in the other indexes.
    pub(super) fn index_held(&mut self, seq: Seq, holder: Seq) {
        let (Some(message), Some(batches)) = (self.store.get(seq), &mut self.batches) else {
            return;
        };
        let own = batches.members.batch_of(seq);
        batches.held.insert((message.sent_at, seq), ());
        let (group, expires) = (message.group, expiry(message, self.settings.ttl));
        if let Some(named) = own.and_then(|own| batches.get_mut(own)) {
            *named.waits_for.entry(holder).or_default() += 1;
        }
        if let Some(at) = expires {
            self.expiring.insert((at, seq), ());
            self.wake_by(at);
        }
        self.count_held_of(group, true);
    }

    /// Takes a held message out of the indexes. The caller gives it another state.
    pub(super) fn leave_held(&mut self, seq: Seq) {
        let (Some(message), Some(batches)) = (self.store.get(seq), &mut self.batches) else {
            return;
        };
        let Some(after) = message.after() else {
            return;
        };
        let on_fail = after.on_fail as usize;
        let of_name = batches.find(&after.batch);
        let named = of_name.and_then(|batch| batches.get_mut(batch));
        let held = named.and_then(|named| named.held.get_mut(on_fail));
        if held.is_some_and(|held| held.remove(&seq).is_some()) {
            return self.unindex_held(seq, of_name);
        }
        let holder = batches.released.iter_mut().find_map(|released| {
            let held = released.held.get_mut(on_fail)?;
            held.remove(&seq).map(|()| released.batch)
        });
        self.unindex_held(seq, holder);
    }

    /// Takes a held message, which its holder has lost already, out of the other
    /// indexes.
    fn unindex_held(&mut self, seq: Seq, holder: Option<Seq>) {
        let (Some(message), Some(batches)) = (self.store.get(seq), &mut self.batches) else {
            return;
        };
        batches.held.remove(&(message.sent_at, seq));
        let (group, expires) = (message.group, expiry(message, self.settings.ttl));
        let own = batches.members.batch_of(seq);
        let named = own.and_then(|own| batches.get_mut(own));
        if let (Some(named), Some(holder)) = (named, holder) {
            if let Some(count) = named.waits_for.get_mut(&holder) {
                *count -= 1;
                if *count == 0 {
                    named.waits_for.remove(&holder);
                }
            }
        }
        if let Some(at) = expires {
            self.expiring.remove(&(at, seq));
        }
        self.count_held_of(group, false);
    }

    /// Counts a message of a group that is held, or is so no longer.
    fn count_held_of(&mut self, ix: GroupIx, comes: bool) {
        if let Some(group) = self.groups.get_mut(ix) {
            let ext = group.ext_mut();
            match comes {
                true => ext.held += 1,
                false => ext.held -= 1,
            }
            self.groups.settle(ix);
        }
    }

    /// Keeps with a message how many messages the batch has that it waited for.
    fn keep_counts(&mut self, seq: Seq, counts: Counts) {
        self.store.with(seq, |message| {
            let choices = message.extension_mut().choices.as_mut();
            if let Some(after) = choices.and_then(|choices| choices.after_mut()) {
                after.counts = counts;
            }
        });
    }

    /// Applies a change to the batch of a message, if it is in one. Returns the
    /// number of the batch.
    fn change_batch_of(&mut self, seq: Seq, change: impl FnOnce(&mut NamedBatch)) -> Option<Seq> {
        let batches = self.batches.as_mut()?;
        let batch = batches.members.batch_of(seq)?;
        change(batches.get_mut(batch)?);
        Some(batch)
    }

    /// A message is delivered, and runs.
    pub(super) fn member_started(&mut self, seq: Seq) {
        self.change_batch_of(seq, |batch| {
            batch.counts.pending -= 1;
            batch.counts.running += 1;
        });
    }

    /// A message runs no longer. It counts as pending until it has ended.
    pub(super) fn member_stopped(&mut self, seq: Seq) {
        self.change_batch_of(seq, |batch| {
            batch.counts.running -= 1;
            batch.counts.pending += 1;
        });
    }

    /// A dead message is pending again.
    pub(super) fn member_redriven(&mut self, seq: Seq) {
        self.change_batch_of(seq, |batch| {
            batch.counts.dead -= 1;
            batch.counts.pending += 1;
        });
    }

    /// A message that is pending, or dead and cancelled, ends at `at`.
    pub(super) fn member_ended(&mut self, seq: Seq, stored: StoredState, at: Millis) {
        let was_dead = self
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
                StoredState::Finished => counts.finished += 1,
                StoredState::Cancelled => counts.cancelled += 1,
                _ => counts.dead += 1,
            }
        });
        let (Some(batch), Some(batches)) = (batch, &mut self.batches) else {
            return;
        };
        if let Some(named) = batches.get_mut(batch) {
            let counts = named.counts;
            let [_, _, dies] = &mut named.held;
            if stored == StoredState::Dead && !dies.is_empty() {
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
        if let Some(message) = self.store.get_mut(seq) {
            // If no record is kept, the message is removed next, and has then ended
            // already.
            message.stored = stored;
        }
    }

    /// A message is removed. If it had not ended, it has now.
    pub(super) fn member_gone(&mut self, seq: Seq) {
        let message = self.store.get(seq);
        let stored = message.map(|message| message.stored);
        let is_leased = message.is_some_and(|message| message.receipt() != 0);
        let at = self.last;
        let Some(batches) = &mut self.batches else {
            return;
        };
        let Some(batch) = batches.members.remove(seq) else {
            return;
        };
        if let Some(named) = batches.get_mut(batch) {
            named.members -= 1;
            match stored {
                Some(StoredState::Finished | StoredState::Cancelled) | None => {}
                Some(StoredState::Dead) => named.counts.dead -= 1,
                Some(StoredState::Running) if is_leased => named.counts.running -= 1,
                Some(_) => named.counts.pending -= 1,
            }
        }
        batches.touch(batch, at);
    }

    /// Releases what is held no longer after an operation, and lets those die that
    /// are to. A few at once; the timer does the rest.
    #[inline]
    pub(super) fn settle_batches(&mut self) {
        if self.batches.is_some() {
            self.settle_some(AT_ONCE);
            if self.has_released() {
                self.finish_manually();
            }
        }
    }

    /// Like [`Queue::settle_batches`], after an event. Returns whether any message was
    /// released or died.
    #[inline]
    pub(super) fn settle_batches_at_event(&mut self) -> bool {
        self.batches.is_some() && self.settle_some(AT_ONCE) > 0
    }

    /// Releases up to `most` messages that are held no longer. Returns how many.
    pub(super) fn settle_some(&mut self, most: usize) -> usize {
        let mut done = 0;
        loop {
            self.close_touched();
            let Some(batches) = &mut self.batches else {
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
                    self.unindex_held(seq, Some(batch));
                    self.release(seq, at, dies, counts);
                }
            }
        }
        if self
            .batches
            .as_ref()
            .is_some_and(|batches| batches.is_empty())
        {
            self.batches = None;
        }
        done
    }

    /// Moves the held messages of batches that hold them no longer to those that are
    /// released, and closes batches. O(1) for each batch.
    fn close_touched(&mut self) {
        let Some(batches) = &mut self.batches else {
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

    /// Makes a message that was held due as of `at`, or at its own due time if that
    /// is later; or lets it die.
    fn release(&mut self, seq: Seq, at: Millis, dies: bool, counts: Counts) {
        self.keep_counts(seq, counts);
        let group = self.store.get(seq).map_or(GroupIx::NONE, |m| m.group);
        self.changed();
        if dies {
            self.die(seq, Reason::Batch, at);
        } else {
            self.store.with(seq, |message| {
                let due = message.due.max(at);
                let ext = message.extension_mut();
                ext.due_at = due;
                ext.ttl_base = due;
                message.due = due;
            });
            self.enter_pending(seq, self.last);
        }
        self.refresh(group, self.last, Join::by_time(at));
    }

    /// Lets a message die whose batch has a dead one already when it is sent.
    pub(super) fn die_of_batch(&mut self, seq: Seq, batch: Seq, now: Millis) {
        let named = self.batches.as_ref().and_then(|batches| batches.get(batch));
        let counts = named.map_or(Counts::default(), |named| named.counts);
        self.leave_held(seq);
        self.release(seq, now, true, counts);
    }

    /// Sets the due time of a held message, which stays held.
    pub(super) fn reschedule_held(&mut self, seq: Seq, due: Millis) {
        self.store.with(seq, |message| {
            let ext = message.extension_mut();
            ext.due_at = due;
            ext.score_base = due;
            ext.ttl_base = due;
            message.due = due;
        });
    }

    /// Whether messages are held no longer and have not been released yet.
    pub(super) fn has_released(&self) -> bool {
        let batches = self.batches.as_ref();
        batches.is_some_and(|batches| !batches.released.is_empty())
    }
}
