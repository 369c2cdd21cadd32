//! The ends of messages that clients wait for (DQ.WAIT).

use crate::message::state::{State, StoredState};
use crate::op::Ending;
use crate::queue::Queue;
use crate::Seq;

impl Queue {
    /// The end of a message, and its result or error, if it has ended and is still there.
    pub fn ended(&self, seq: Seq) -> Option<(State, Option<&[u8]>)> {
        let message = self.state.store.get(seq)?;
        if !message.stored.is_ended() {
            return None;
        }
        let state = self.view(seq, self.state.last)?.state;
        let texts = message.texts();
        let text = match state {
            State::Finished => texts.and_then(|texts| texts.result.as_deref()),
            State::Dead => texts.and_then(|texts| texts.error.as_deref()),
            State::Cancelled => None,
            _ => return None,
        };
        Some((state, text))
    }

    /// Makes sure that the end of the message with this id is reported, as
    /// [`Queue::watch`] does, if the message exists and has not ended. Otherwise returns
    /// its end.
    pub fn watch_again(&mut self, id: Box<[u8]>) -> Option<Ending> {
        let end = match self.find(&id) {
            Some(seq) => match self.ended(seq) {
                Some((state, text)) => Some((state, text.map(Into::into))),
                None => {
                    self.watch(&id);
                    return None;
                }
            },
            None => None,
        };
        Some(Ending { id, end })
    }

    /// Reports the end of this message to the clients that wait for it.
    pub(super) fn publish_end(&mut self, seq: Seq, stored: StoredState) {
        if self.notes.watched.used().is_none_or(|all| all.is_empty()) {
            return;
        }
        let Some(message) = self.state.store.get(seq) else {
            return;
        };
        let id = self.id_of(seq, message).to_box();
        if !self.notes.watched.remove(&id) {
            return;
        }
        let texts = message.texts();
        let end = match stored {
            StoredState::Finished => (State::Finished, texts.and_then(|n| n.result.clone())),
            StoredState::Cancelled => (State::Cancelled, None),
            _ => (State::Dead, texts.and_then(|n| n.error.clone())),
        };
        self.notes
            .effects
            .told_mut()
            .endings
            .push(Ending { id, end: Some(end) });
    }

    /// Reports the removal of this message to the clients that wait for it.
    pub(in crate::queue) fn publish_removed(&mut self, seq: Seq) {
        if self.notes.watched.used().is_none_or(|all| all.is_empty()) {
            return;
        }
        if let Some(message) = self.state.store.get(seq) {
            let id = self.id_of(seq, message).to_box();
            if self.notes.watched.remove(&id) {
                self.notes
                    .effects
                    .told_mut()
                    .endings
                    .push(Ending { id, end: None });
            }
        }
    }
}
