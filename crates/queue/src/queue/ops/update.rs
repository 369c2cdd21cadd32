//! UPDATE: another payload for a pending message.

use crate::error::Error;
use crate::message::Message;
use crate::op::Done;
use crate::queue::Queue;
use crate::seeded::{seeded, Bug};
use crate::Millis;

impl Queue {
    /// Replaces the payload of a pending message. Returns whether there was such a
    /// message.
    ///
    /// Errors: MAXBYTES does not allow the new size.
    pub(in crate::queue) fn update(
        &mut self,
        id: &[u8],
        payload: &[u8],
        now: Millis,
    ) -> Result<Done, Error> {
        let after = payload.len() as u64;
        self.check_update(id, after)?;
        let Some((seq, _)) = self.find_pending(id, now) else {
            return Ok(Done::Flag(false));
        };
        let before = self.state.store.get(seq).map_or(0, Message::payload_len);
        self.state.store.set_payload(seq, payload);
        if !seeded(Bug::UpdateForgetsBytes) {
            self.indexes.bytes = self.indexes.bytes - before + after;
        }
        self.changed();
        Ok(Done::Flag(true))
    }

    /// Checks that MAXBYTES allows the message with this id, if it is pending, a
    /// payload of `after` bytes. Changes nothing.
    fn check_update(&self, id: &[u8], after: u64) -> Result<(), Error> {
        let found = self.find(id);
        let found = found.and_then(|seq| self.state.store.get(seq));
        match found {
            Some(message) if message.stored.is_pending() => self.check_bytes(Some(message), after),
            _ => Ok(()),
        }
    }
}
