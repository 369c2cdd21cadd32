//! Dead messages that hold their groups (`ONDEAD BLOCK`).
//!
//! A held group gives nothing until the dead message is redriven, cancelled or
//! purged, or the group is resumed. The hold stays when the record of the dead
//! message is pruned.

use crate::groups::group::Group;
use crate::groups::holds::Holder;
use crate::message::id::Id;
use crate::message::state::StoredState;
use crate::queue::Queue;
use crate::seeded::{seeded, Bug};
use crate::settings::OnDead;
use crate::{GroupIx, Seq};

impl Queue {
    /// Whether a dead message holds a group.
    pub(in crate::queue) fn is_held_by_dead(&self, group: &Group) -> bool {
        self.state.settings.on_dead == OnDead::Block && !group.holds().is_empty()
    }

    /// Makes a dead message hold its group. The caller refreshes the group.
    pub(in crate::queue) fn hold(&mut self, seq: Seq, ix: GroupIx) {
        if let Some(group) = self.state.groups.get_mut(ix) {
            group.ext_mut().holds.add(seq);
        }
    }

    /// Ends the hold of one dead message, if it has one. The caller refreshes the
    /// group.
    pub(in crate::queue) fn unhold(&mut self, seq: Seq, ix: GroupIx) {
        if let Some(ext) = self.state.groups.get_mut(ix).and_then(Group::ext_if_any) {
            ext.holds.remove(seq);
        }
    }

    /// Keeps the hold of a dead message whose record is about to be removed: it is
    /// then remembered by its id.
    pub(in crate::queue) fn keep_hold(&mut self, seq: Seq) {
        let Some(message) = self.state.store.get(seq) else {
            return;
        };
        let group = message.group;
        if message.stored != StoredState::Dead || !group.is_some() || seeded(Bug::PrunedHoldStays) {
            return;
        }
        let Some(message) = self.state.store.get(seq) else {
            return;
        };
        let id = self.id_of(seq, message).to_box();
        if let Some(ext) = self.state.groups.get_mut(group).and_then(Group::ext_if_any) {
            if ext.holds.remove(seq) {
                ext.holds.add_pruned(seq, &id);
            }
        }
    }

    /// Ends all holds of a group. Returns whether there were any. The caller
    /// refreshes the group.
    pub(in crate::queue) fn end_holds(&mut self, ix: GroupIx) -> bool {
        let group = self.state.groups.get_mut(ix);
        let mut holds = group.map(Group::take_holds).unwrap_or_default();
        let held = !holds.is_empty();
        self.discard_index(holds.take_dead());
        held
    }

    /// The id of a message that holds a group.
    pub(in crate::queue) fn holder_id<'a>(&'a self, holder: Holder<'a>) -> Option<Id<'a>> {
        Some(match holder {
            Holder::Pruned(_, id) => Id::Given(id),
            Holder::Dead(seq) => self.id_of(seq, self.state.store.get(seq)?),
        })
    }
}
