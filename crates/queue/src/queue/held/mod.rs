//! Held messages: pending messages that are not delivered before the events that they wait for.
//!
//! A message waits for a count to come to nought: the messages of a batch that have not
//! ended (AFTER, `batch.rs`), children (CHILDREN, `children.rs`), or one signal (PARK,
//! `park.rs`), for which a time may be set as well. One that was sent with more than one of
//! them waits for its batch first, then for its children, and is parked last. Here are the
//! indexes that all of them share. `release.rs` is the one way out: a message falls due, or at its
//! own due time if that is later.
//!
//! A held message keeps its place in its group by its score, and holds back no other.

mod batch;
mod children;
mod park;
mod release;

use crate::queue::moves::expiry;
use crate::queue::Queue;
use crate::{GroupIx, Millis, Seq};

impl Queue {
    /// Adds a held message to the indexes that all held ones share.
    fn enter_held(&mut self, seq: Seq) {
        let Some(message) = self.state.store.get(seq) else {
            return;
        };
        let (group, expires) = (message.group, expiry(message, self.state.settings.ttl));
        self.indexes
            .held
            .all
            .insert((message.held_since(), seq), ());
        if let Some(at) = expires {
            self.indexes.expiring.insert((at, seq), ());
            self.wake_by(at);
        }
        self.count_held_of(group, true);
    }

    /// Removes a held message from those indexes.
    fn exit_held(&mut self, seq: Seq) {
        let Some(message) = self.state.store.get(seq) else {
            return;
        };
        let (group, expires) = (message.group, expiry(message, self.state.settings.ttl));
        let known = self.indexes.held.all.remove(&(message.held_since(), seq));
        debug_assert!(known.is_some(), "no index has the held message {seq}");
        if let Some(at) = expires {
            self.indexes.expiring.remove(&(at, seq));
        }
        self.count_held_of(group, false);
        self.indexes.held.dying.remove(&seq);
    }

    /// Removes a held message from all indexes. The caller gives it another state.
    pub(in crate::queue) fn leave_held(&mut self, seq: Seq) {
        if self.is_parked(seq) {
            self.leave_park(seq);
        } else if self.is_held_by_children(seq) {
            self.exit_held(seq);
            self.indexes.held.by_children -= 1;
        } else {
            self.leave_batch(seq);
        }
        self.end_wait_for_children(seq);
    }

    /// Counts a message of a group that is held, or is so no longer.
    fn count_held_of(&mut self, ix: GroupIx, comes: bool) {
        if let Some(group) = self.state.groups.get_mut(ix) {
            let ext = group.ext_mut();
            match comes {
                true => ext.held += 1,
                false => ext.held -= 1,
            }
            self.state.groups.settle(ix);
        }
    }

    /// Sets the due time of a held message, which stays held. `is_point`: whether it was
    /// given as a point of time.
    pub(in crate::queue) fn reschedule_held(&mut self, seq: Seq, due: Millis, is_point: bool) {
        self.state.store.with(seq, |message| {
            let ext = message.extension_mut();
            ext.due_at = due;
            ext.score_base = due;
            ext.ttl_base = due;
            if !message.is_parked() {
                message.due = due;
            }
            message.set_due_at_point(is_point);
        });
    }
}
