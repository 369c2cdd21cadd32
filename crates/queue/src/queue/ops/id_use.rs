//! The use of an id by a SEND: whether it is free, and which message has it.

use crate::message::state::StoredState;
use crate::op::Send;
use crate::queue::Queue;
use crate::{Millis, Seq};

/// Whether a message may take the id that its sender gives it, and the message that it replaces.
pub(in crate::queue) enum IdUse {
    /// No message has the id.
    Free,
    /// A record has the id. The new message takes its place.
    Record(Seq),
    /// A pending message has the id. The new message replaces it.
    Waiting(Seq),
    /// A dead or cancelled message has the id. The new message replaces it.
    Ended(Seq),
    /// A running message has the id. The new message waits for the end of that run.
    Running(Seq),
    /// The id is taken.
    Taken,
}

impl IdUse {
    /// The pending message that is replaced, if there is one.
    pub(in crate::queue) fn waiting(&self) -> Option<Seq> {
        match self {
            IdUse::Waiting(seq) => Some(*seq),
            _ => None,
        }
    }
}

impl Queue {
    /// The use of the id of this SEND.
    pub(in crate::queue) fn id_use(&self, id: &[u8], send: &Send, now: Millis) -> IdUse {
        let replace = send.replace;
        let Some(seq) = self.find(id) else {
            let remembered = self.state.records.dedup.ended_at(id);
            return match remembered.is_some_and(|ended_at| self.still_taken(ended_at, now)) {
                true => IdUse::Taken,
                false => IdUse::Free,
            };
        };
        let Some(message) = self.state.store.get(seq) else {
            return IdUse::Free;
        };
        match message.stored {
            // The message has expired, even if it was not moved to dead yet.
            _ if self.expired_at(message, now).is_some() => match replace {
                true => IdUse::Ended(seq),
                false => IdUse::Taken,
            },
            stored if stored.is_pending() && replace => IdUse::Waiting(seq),
            StoredState::Dead if self.is_over_age(message, now) => IdUse::Record(seq),
            StoredState::Finished | StoredState::Cancelled
                if !self.still_taken(message.ended_at(), now) =>
            {
                IdUse::Record(seq)
            }
            StoredState::Cancelled if self.is_over_age(message, now) => IdUse::Taken,
            StoredState::Dead | StoredState::Cancelled if replace => IdUse::Ended(seq),
            StoredState::Running if replace && send.rerun => IdUse::Running(seq),
            _ => IdUse::Taken,
        }
    }

    fn still_taken(&self, ended_at: Millis, now: Millis) -> bool {
        ended_at.saturating_add(self.state.settings.dedup) > now
    }

    /// Whether a message already has the id that would be generated for this
    /// number.
    pub(super) fn is_given(&self, seq: Seq, now: Millis) -> bool {
        self.state
            .ids
            .find_given(&self.state.store, seq, now)
            .is_some()
    }

    /// When the first send of this chain of replacements was made (Unix ms). The message
    /// is the newest of the chain.
    pub(in crate::queue) fn first_sent_at(&self, seq: Seq) -> Option<Millis> {
        let sent_at = self.state.store.get(seq)?.sent_at;
        Some(self.state.store.first_sent(seq).unwrap_or(sent_at))
    }
}
