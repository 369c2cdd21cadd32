//! The indexes of held messages: those that wait for a named batch.

use crate::message::after::Counts;
use crate::message::Message;
use crate::queue::moves::expiry;
use crate::queue::Queue;
use crate::{GroupIx, Millis, Seq};

impl Queue {
    /// Enters a held message in the indexes.
    pub(in crate::queue) fn hold_by(&mut self, seq: Seq, holder: Seq) {
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
    pub(in crate::queue) fn index_held(&mut self, seq: Seq, holder: Seq) {
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
    pub(in crate::queue) fn leave_held(&mut self, seq: Seq) {
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
    pub(super) fn unindex_held(&mut self, seq: Seq, holder: Option<Seq>) {
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
    pub(super) fn keep_counts(&mut self, seq: Seq, counts: Counts) {
        self.store.with(seq, |message| {
            let choices = message.extension_mut().choices.as_mut();
            if let Some(after) = choices.and_then(|choices| choices.after_mut()) {
                after.counts = counts;
            }
        });
    }

    /// Sets the due time of a held message, which stays held. `is_point`: whether it was
    /// given as a point of time.
    pub(in crate::queue) fn reschedule_held(&mut self, seq: Seq, due: Millis, is_point: bool) {
        self.store.with(seq, |message| {
            let ext = message.extension_mut();
            ext.due_at = due;
            ext.score_base = due;
            ext.ttl_base = due;
            message.due = due;
            message.set_due_at_point(is_point);
        });
    }
}
