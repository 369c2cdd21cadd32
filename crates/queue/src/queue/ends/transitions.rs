//! Notes the transitions of messages for the event stream, where a queue has one (EVENTS).
//!
//! Without one, each of these functions is a test of one option.

use crate::message::state::StoredState;
use crate::message::Choices;
use crate::queue::Queue;
use crate::transition::{Kind, Transition};
use crate::{Millis, Seq};

impl Queue {
    /// Whether transitions are noted.
    #[inline]
    pub(in crate::queue) fn has_events(&self) -> bool {
        self.state.settings.events.is_some()
    }

    /// Notes a transition that happens now.
    #[inline]
    pub(in crate::queue) fn note(&mut self, seq: Seq, kind: Kind) {
        if self.has_events() {
            self.note_at(seq, kind, self.state.last, 0);
        }
    }

    /// Notes a transition that happens at `at`, behind which the message is due at `due` (both in
    /// Unix ms).
    #[inline]
    pub(in crate::queue) fn note_until(&mut self, seq: Seq, kind: Kind, at: Millis, due: Millis) {
        if self.has_events() {
            self.note_at(seq, kind, at, due.saturating_sub(at));
        }
    }

    /// Notes that a message is sent.
    #[inline]
    pub(in crate::queue) fn note_sent(&mut self, seq: Seq, now: Millis) {
        if self.has_events() {
            let due = self.state.store.get(seq).map_or(now, |message| message.due);
            self.note_until(seq, Kind::Sent, now, due);
        }
    }

    /// Notes a delivery. A message that was not promoted yet becomes ready first, as of when it was
    /// due.
    #[cold]
    pub(in crate::queue) fn note_delivery(&mut self, seq: Seq, was: StoredState, now: Millis) {
        if was != StoredState::Due {
            let due = self.state.store.get(seq).map_or(now, |message| message.due);
            self.note_at(seq, Kind::Ready, due, 0);
        }
        self.note_at(seq, Kind::Delivered, now, 0);
    }

    /// Notes how a message has ended, at `at`.
    #[inline]
    pub(in crate::queue) fn note_end(&mut self, seq: Seq, stored: StoredState, at: Millis) {
        if self.has_events() {
            let kind = match stored {
                StoredState::Finished => Kind::Acked,
                StoredState::Cancelled => Kind::Cancelled,
                _ => Kind::Dead,
            };
            self.note_at(seq, kind, at, 0);
        }
    }

    /// Notes that all messages were purged.
    pub(in crate::queue) fn note_purge_of_all(&mut self) {
        if self.has_events() {
            let transition = Transition {
                kind: Kind::Purged,
                at: self.state.last,
                id: Box::default(),
                group: None,
                label: None,
                attempt: 0,
                consumer: None,
                reason: None,
                delay: None,
            };
            self.notes.effects.told_mut().transitions.push(transition);
        }
    }

    #[cold]
    fn note_at(&mut self, seq: Seq, kind: Kind, at: Millis, delay: Millis) {
        let Some(message) = self.state.store.get(seq) else {
            return;
        };
        let consumer = match kind.is_of_consumer() {
            true => self.state.consumers.name(message.history.consumer()),
            false => None,
        };
        let reason = match kind {
            Kind::Dead => message.texts().and_then(|texts| texts.reason),
            _ => None,
        };
        let transition = Transition {
            kind,
            at,
            id: self.id_of(seq, message).to_box(),
            group: self.state.groups.name(message.group).map(Into::into),
            label: message.choices().and_then(label),
            attempt: message.history.attempt(),
            consumer: consumer.map(Into::into),
            reason,
            delay: Some(delay).filter(|delay| *delay > 0),
        };
        self.notes.effects.told_mut().transitions.push(transition);
    }

    /// The messages that are due, if transitions are noted.
    pub(in crate::queue) fn noted_due(&self) -> Vec<Seq> {
        let messages = self.state.store.iter().filter(|_| self.has_events());
        let due = messages.filter(|(_, message)| message.stored == StoredState::Due);
        due.map(|(seq, _)| seq).collect()
    }

    /// Notes that some of these messages are not due any more, because the clock was set back.
    pub(in crate::queue) fn note_no_longer_due(&mut self, were_due: &[Seq], now: Millis) {
        for seq in were_due {
            let message = self.state.store.get(*seq);
            let message = message.filter(|message| message.stored != StoredState::Due);
            if let Some(due) = message.map(|message| message.due) {
                self.note_until(*seq, Kind::Rescheduled, now, due);
            }
        }
    }
}

fn label(choices: &Choices) -> Option<Box<[u8]>> {
    choices.label.clone()
}
