//! The ties of the queue to other keys, and how they are cut.

use std::sync::Arc;

use crate::detached::{Detached, Ties};
use crate::message::Message;
use crate::op::Done;
use crate::queue::Queue;
use crate::settings::Changes;
use crate::{Millis, Receipt, Seq};

impl Queue {
    /// The ties to other keys. O(1), and O(messages) where messages wait for the end of a run.
    pub fn ties(&self) -> Ties {
        Ties {
            events: self.state.settings.events.is_some(),
            dead_to: self.state.settings.dead_to.is_some(),
            parents: self.state.seldom.has_siblings()
                || self.indexes.has_reruns
                    && self.state.store.iter().any(|(_, message)| {
                        let rerun = message.rerun();
                        rerun.is_some_and(|rerun| rerun.choices.parent().is_some())
                    }),
        }
    }

    /// Whether the delivery with this receipt has not ended by `now`. O(log n).
    pub fn is_current(&self, receipt: Receipt, now: Millis) -> bool {
        self.current(receipt, now).is_some()
    }

    /// The keys besides its own that the end of the delivery with this receipt may change: those of
    /// EVENTS, of DEADTO and of the parent. O(log n).
    pub fn keys_of_end(&self, receipt: Receipt, now: Millis) -> impl Iterator<Item = &[u8]> {
        let lease = self.current(receipt, now);
        let parent = lease.and_then(|lease| self.parent_of(lease.seq));
        let dead_to = self.state.settings.dead_to.as_ref();
        let keys = [
            self.state.settings.events.as_deref(),
            dead_to.map(|dead_to| &*dead_to.key),
            parent.map(|parent| &*parent.key),
        ];
        keys.into_iter().flatten()
    }

    /// The ties that the queue has lost, if there are any.
    pub fn detached(&self) -> Option<&Detached> {
        self.state.seldom.detached.as_deref()
    }

    /// Cuts these ties. Nobody is told. O(children).
    pub(in crate::queue) fn detach(&mut self, what: Ties) -> Done {
        let what = what.of(self.ties());
        if what.is_nothing() {
            return Done::Ok;
        }
        if what.events {
            Arc::make_mut(&mut self.state.settings).events = None;
        }
        if what.dead_to {
            Arc::make_mut(&mut self.state.settings).dead_to = None;
        }
        if what.parents {
            self.cut_parents();
        }
        let detached = self.state.seldom.detached.get_or_insert_default();
        detached.events |= what.events;
        detached.dead_to |= what.dead_to;
        self.settle_detached();
        self.changed();
        Done::Ok
    }

    /// Cuts all messages from their parents.
    pub(in crate::queue) fn cut_parents(&mut self) {
        if let Some(all) = self
            .state
            .seldom
            .used_mut()
            .and_then(|seldom| seldom.siblings.take())
        {
            let children = self.state.store.iter().map(|(seq, _)| seq);
            let children = children.filter(|seq| all.number_of(*seq).is_some());
            let detached = self.state.seldom.detached.get_or_insert_default();
            detached.children.extend(children);
            self.discard_siblings(*all);
        }
        if !self.indexes.has_reruns {
            return;
        }
        let waits = |message: &Message| {
            let rerun = message.rerun();
            rerun.is_some_and(|rerun| rerun.choices.parent().is_some())
        };
        let waiting = self
            .state
            .store
            .iter()
            .filter(|(_, message)| waits(message));
        for seq in waiting.map(|(seq, _)| seq).collect::<Vec<_>>() {
            if let Some(message) = self.state.store.get_mut(seq) {
                message.change_left(|more| {
                    if let Some(rerun) = &mut more.rerun {
                        rerun.choices.forget_parent();
                    }
                });
            }
        }
    }

    /// Forgets that options were turned off which are given now.
    pub(in crate::queue) fn attach(&mut self, changes: &Changes) {
        if let Some(detached) = self.state.seldom.detached_mut() {
            detached.events &= changes.events.is_none();
            detached.dead_to &= changes.dead_to.is_none();
            self.settle_detached();
        }
    }

    /// A message goes that may have been cut from its parent.
    pub(in crate::queue) fn detached_gone(&mut self, seq: Seq) {
        if let Some(detached) = self.state.seldom.detached_mut() {
            detached.children.remove(&seq);
            self.settle_detached();
        }
    }

    /// All messages go.
    pub(in crate::queue) fn all_detached_gone(&mut self) {
        if let Some(detached) = self.state.seldom.detached_mut() {
            detached.children.clear();
            self.settle_detached();
        }
    }

    fn settle_detached(&mut self) {
        let is_nothing = |detached: &Detached| detached.ties().is_nothing();
        if self
            .state
            .seldom
            .detached
            .as_deref()
            .is_some_and(is_nothing)
        {
            self.state.seldom.detached = None;
        }
    }
}
