//! Dead messages that hold their groups (`ONDEAD BLOCK`).
//!
//! A held group gives nothing until the dead message is redriven, cancelled or
//! purged, or the group is resumed. The hold stays when the record of the dead
//! message is pruned.

use super::Queue;
use crate::groups::group::Group;
use crate::groups::holds::Holder;
use crate::message::id::Id;
use crate::message::state::StoredState;
use crate::settings::OnDead;
use crate::{GroupIx, Seq};

impl Queue {
    /// Whether a dead message holds a group.
    pub(super) fn is_held_by_dead(&self, group: &Group) -> bool {
        self.settings.on_dead == OnDead::Block && !group.holds(self.groups.purges()).is_empty()
    }

    /// Makes a dead message hold its group. The caller refreshes the group.
    pub(super) fn hold(&mut self, seq: Seq, ix: GroupIx) {
        self.heed_purges(ix);
        if let Some(group) = self.groups.get_mut(ix) {
            group.ext_mut().holds.add(seq);
        }
    }

    /// Ends the hold of one dead message, if it has one. The caller refreshes the
    /// group.
    pub(super) fn unhold(&mut self, seq: Seq, ix: GroupIx) {
        self.heed_purges(ix);
        if let Some(ext) = self.groups.get_mut(ix).and_then(Group::ext_if_any) {
            ext.holds.remove(seq);
        }
    }

    /// Keeps the hold of a dead message whose record is about to be removed: it is
    /// then remembered by its id.
    pub(super) fn keep_hold(&mut self, seq: Seq) {
        let Some(message) = self.store.get(seq) else {
            return;
        };
        let group = message.group;
        if message.stored != StoredState::Dead || !group.is_some() {
            return;
        }
        self.heed_purges(group);
        let Some(message) = self.store.get(seq) else {
            return;
        };
        let id = self.id_of(seq, message).to_box();
        if let Some(ext) = self.groups.get_mut(group).and_then(Group::ext_if_any) {
            if ext.holds.remove(seq) {
                ext.holds.add_pruned(seq, &id);
            }
        }
    }

    /// Ends all holds of a group. Returns whether there were any. The caller
    /// refreshes the group.
    pub(super) fn end_holds(&mut self, ix: GroupIx) -> bool {
        self.heed_purges(ix);
        let group = self.groups.get_mut(ix);
        let mut holds = group.map(Group::take_holds).unwrap_or_default();
        let held = !holds.is_empty();
        self.discard_numbers(holds.take_dead());
        held
    }

    /// Ends the holds of a group whose dead messages are still stored, except those
    /// that were redriven and are not moved yet. The caller refreshes the group.
    /// O(1); O(log n) for each hold while redriven messages of groups are not all
    /// moved.
    pub(super) fn end_holds_of_dead(&mut self, ix: GroupIx) {
        self.heed_purges(ix);
        let ext = self.groups.get_mut(ix).and_then(Group::ext_if_any);
        let Some(dead) = ext.map(|ext| ext.holds.take_dead()) else {
            return;
        };
        if self.redriving.left.grouped.is_empty() {
            return self.discard_numbers(dead);
        }
        for (seq, ()) in &dead {
            let message = self.store.get(seq);
            if message.is_some_and(|message| self.redriving.has(seq, message)) {
                self.hold(seq, ix);
            }
        }
    }

    /// The id of a message that holds a group.
    pub(super) fn holder_id<'a>(&'a self, holder: Holder<'a>) -> Option<Id<'a>> {
        Some(match holder {
            Holder::Pruned(_, id) => Id::Given(id),
            Holder::Dead(seq) => self.id_of(seq, self.store.get(seq)?),
        })
    }
}
