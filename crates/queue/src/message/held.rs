//! The conditions that a held message waits for, and how long it waits.

use super::after::After;
use super::kin::Wait;
use super::state::StoredState;
use super::Message;
use crate::{Millis, NEVER};

impl Message {
    /// The batch that it waits for, if a batch holds it.
    pub fn held_after(&self) -> Option<&After> {
        let waits = self.stored == StoredState::Held && !self.is_parked();
        let waits = waits && !self.is_held_by_children();
        self.after().filter(|_| waits)
    }

    /// Whether it is held until its children have ended.
    pub fn is_held_by_children(&self) -> bool {
        let is_held = self.stored == StoredState::Held;
        let children = self.children().filter(|_| is_held);
        children.is_some_and(|children| children.wait == Wait::Now)
    }

    /// Whether it is held until a signal comes.
    pub fn is_parked(&self) -> bool {
        let parked_at = self.extension().map_or(NEVER, |ext| ext.ended_at);
        self.stored == StoredState::Held && parked_at != NEVER
    }

    /// Since when it is held, if it is (Unix ms).
    pub fn held_since(&self) -> Millis {
        match self.extension() {
            Some(ext) if self.is_parked() => ext.ended_at,
            _ => self.sent_at,
        }
    }

    /// When it becomes due without a signal, if it is parked for a limited time (Unix ms).
    pub fn parked_until(&self) -> Option<Millis> {
        (self.is_parked() && self.due != NEVER).then_some(self.due)
    }
}
