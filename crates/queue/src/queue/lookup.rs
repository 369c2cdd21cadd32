//! Finding a message, and the state in which a client sees it.

use crate::index::ready_line::Join;
use crate::message::state::{State, StoredState};
use crate::message::Message;
use crate::queue::Queue;
use crate::{GroupIx, Millis, Seq};

impl Queue {
    /// The state of a message at `now`. It counts everything that is due by then,
    /// processed or not.
    pub fn state_of(&self, message: &Message, now: Millis) -> State {
        let ready = || match self.state.groups.get(message.group) {
            Some(group) if self.group_head(group, now).is_none() => State::Blocked,
            _ => State::Ready,
        };
        match message.stored {
            stored if stored.is_pending() && self.expired_at(message, now).is_some() => State::Dead,
            StoredState::Due => ready(),
            StoredState::Delayed | StoredState::Retry if message.due <= now => ready(),
            StoredState::Delayed => State::Delayed,
            StoredState::Retry => State::Retry,
            StoredState::Running => State::Running,
            StoredState::Finished => State::Finished,
            StoredState::Dead | StoredState::Leaving => State::Dead,
            StoredState::Cancelled => State::Cancelled,
            StoredState::Held => State::Held,
        }
    }

    /// Finds a message by id after processing its due events at `now`.
    pub(super) fn find_current(&mut self, id: &[u8], now: Millis) -> Option<Seq> {
        let seq = self.find(id)?;
        self.bring_up_to_date(seq, now)
    }

    /// Processes the due events of a message at `now`: an expired message dies, unless it
    /// then goes to another queue, a redriven one becomes pending, and a record past its retention is removed. Returns
    /// the number of the message if it is still there.
    pub(super) fn bring_up_to_date(&mut self, seq: Seq, now: Millis) -> Option<Seq> {
        if self.prune_if_over(seq, now) {
            return None;
        }
        // The group is read first: if few records are kept, the message may be gone after
        // it expires.
        let message = self.state.store.get(seq)?;
        let group = message.group;
        if message.stored == StoredState::Leaving {
            return None;
        }
        if self.expired_at(message, now).is_some() {
            if let Some(at) = self.expire_if_over(seq, now) {
                self.refresh(group, at, Join::by_time(at));
            }
        }
        Some(seq)
    }

    pub(super) fn find_pending(&mut self, id: &[u8], now: Millis) -> Option<(Seq, GroupIx)> {
        let seq = self.find_current(id, now)?;
        let message = self.state.store.get(seq)?;
        message.stored.is_pending().then_some((seq, message.group))
    }

    pub(super) fn changed(&mut self) {
        self.notes.effects.changed = true;
        self.notes.effects.visible = true;
    }
}
