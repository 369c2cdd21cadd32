//! Messages that are held by a named batch.

use crate::message::after::Counts;
use crate::message::Message;
use crate::queue::Queue;
use crate::Seq;

impl Queue {
    /// Lets a batch hold a message that is in no index.
    pub(in crate::queue) fn hold_by(&mut self, seq: Seq, holder: Seq) {
        let after = self.state.store.get(seq).and_then(Message::after);
        let on_fail = after.map(|after| after.on_fail as usize);
        let named = self
            .state
            .seldom
            .batches_mut()
            .and_then(|b| b.get_mut(holder));
        let held = named
            .zip(on_fail)
            .and_then(|(n, kind)| n.held.get_mut(kind));
        if let Some(held) = held {
            held.insert(seq, ());
            self.enter_held_by(seq, holder);
        }
    }

    /// Adds a held message, which its batch has already, to the other indexes.
    pub(in crate::queue) fn enter_held_by(&mut self, seq: Seq, holder: Seq) {
        if let Some(batches) = self.state.seldom.batches_mut() {
            let own = batches.members.batch_of(seq);
            if let Some(named) = own.and_then(|own| batches.get_mut(own)) {
                *named.waits_for.entry(holder).or_default() += 1;
            }
        }
        self.enter_held(seq);
    }

    /// Removes a message from those that its batch holds, and from the other indexes.
    pub(super) fn leave_batch(&mut self, seq: Seq) {
        let (Some(message), Some(batches)) =
            (self.state.store.get(seq), self.state.seldom.batches_mut())
        else {
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
            return self.exit_held_by(seq, of_name);
        }
        let holder = batches.released.iter_mut().find_map(|released| {
            let held = released.held.get_mut(on_fail)?;
            held.remove(&seq).map(|()| released.batch)
        });
        self.exit_held_by(seq, holder);
    }

    /// Removes a held message, which its batch has lost already, from the other indexes.
    pub(in crate::queue) fn exit_held_by(&mut self, seq: Seq, holder: Option<Seq>) {
        if let (Some(batches), Some(holder)) = (self.state.seldom.batches_mut(), holder) {
            let own = batches.members.batch_of(seq);
            let named = own.and_then(|own| batches.get_mut(own));
            if let Some(named) = named {
                if let Some(count) = named.waits_for.get_mut(&holder) {
                    *count -= 1;
                    if *count == 0 {
                        named.waits_for.remove(&holder);
                    }
                }
            }
        }
        self.exit_held(seq);
    }

    /// Keeps with a message how many messages the batch has that it waited for.
    pub(in crate::queue) fn keep_counts(&mut self, seq: Seq, counts: Counts) {
        self.state.store.with(seq, |message| {
            let choices = message.extension_mut().choices.as_mut();
            if let Some(after) = choices.and_then(|choices| choices.after_mut()) {
                after.counts = counts;
            }
        });
    }
}
