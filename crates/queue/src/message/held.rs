//! What a held message waits for, and how long.

use super::after::After;
use super::state::StoredState;
use super::Message;
use crate::{Millis, NEVER};

impl Message {
    /// The batch that it waits for, if a batch holds it.
    pub fn held_after(&self) -> Option<&After> {
        let waits = self.stored == StoredState::Held && !self.is_parked();
        self.after().filter(|_| waits)
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

    /// When it falls due without a signal, if it is parked for a limited time (Unix ms).
    pub fn parked_until(&self) -> Option<Millis> {
        (self.is_parked() && self.due != NEVER).then_some(self.due)
    }
}
