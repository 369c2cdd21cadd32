//! One message with its state.
//!
//! A pending message, or one in its first delivery, costs 48 bytes here, plus its id and
//! payload, which are stored elsewhere ([`store`]). The parts that only some messages
//! have (failures, options of their own, texts) is behind one pointer: its extension.

pub mod after;
pub mod body;
mod choices;
pub mod due_time;
pub mod errors;
pub mod extension;
pub mod given;
mod held;
pub mod history;
pub mod id;
pub mod kin;
pub mod left;
pub mod limited;
mod memory;
pub mod packing;
pub mod rerun;
pub mod retry;
pub mod score;
pub mod state;
pub mod store;

use crate::{GroupIx, Millis, Receipt, NEVER};
use after::After;
use body::{Body, Content};
use errors::FailedAttempt;
use extension::{Extension, Texts};
use given::GivenId;
use history::History;
use kin::Children;
use left::{Left, More};
use limited::Limited;
use rerun::Rerun;
use score::Score;
use state::StoredState;

pub use choices::{Choices, RareChoices};

/// The field and the value of a header.
pub type Header = (Box<[u8]>, Box<[u8]>);

/// The bit of the length of an id which says that the due time was given as a point
/// of time.
const AT: u16 = 1 << 15;

/// One message.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Since when it is or was ready, or when it will be: its due time, the end of
    /// its backoff, or the end of the lease that ran out.
    pub due: Millis,
    /// When it was sent.
    pub sent_at: Millis,
    /// The place of its id, if one was given, and of its payload.
    pub body: Body,
    /// Its deliveries, and its extension if it has one.
    pub history: History,
    /// Its group, or [`GroupIx::NONE`].
    pub group: GroupIx,
    /// Length of the given id in bytes (0 if the id is generated), which is at most
    /// 1024, and [`AT`].
    id_len: u16,
    /// Lower numbers are delivered first.
    pub priority: i8,
    /// Its stored state.
    pub stored: StoredState,
}

impl Message {
    /// A message as just sent. The caller sets its stored state, and stores the
    /// content.
    pub fn new(content: Content, sent_at: Millis, due: Millis) -> Message {
        Message {
            due,
            sent_at,
            body: Body::nowhere(content.payload.len()),
            history: History::None,
            group: GroupIx::NONE,
            id_len: content.id.map_or(0, GivenId::len) as u16,
            priority: 0,
            stored: StoredState::Delayed,
        }
    }

    /// Whether the sender gave it an id.
    pub fn has_given_id(&self) -> bool {
        self.given_id_len() > 0
    }

    /// Length of the given id in bytes; 0 if the id is generated.
    pub fn given_id_len(&self) -> usize {
        (self.id_len & !AT).into()
    }

    /// Whether its due time was given as a point of time, such as by AT, and not as a
    /// span from when it was sent. It says so of the due time that a TTL counts from;
    /// the end of a backoff is always a span.
    pub fn is_due_at_point(&self) -> bool {
        self.id_len & AT != 0
    }

    /// Says whether its due time was given as a point of time.
    #[inline]
    pub fn set_due_at_point(&mut self, is: bool) {
        self.id_len = (self.id_len & !AT) | (u16::from(is) * AT);
    }

    /// Bytes of its payload.
    pub fn payload_len(&self) -> u64 {
        self.body.payload_len() as u64
    }

    /// Its extension, if it has one.
    pub fn extension(&self) -> Option<&Extension> {
        self.history.extension()
    }

    /// Its extension, allocated if there is none yet. Call this before changing
    /// `due`, and through [`store::Store::with`], which counts the memory.
    pub fn extension_mut(&mut self) -> &mut Extension {
        self.history.extension_mut(self.due)
    }

    /// The options that SEND gave, if any.
    pub fn choices(&self) -> Option<&Choices> {
        self.extension()?.choices.as_deref()
    }

    /// The limits that it needs room in, if any.
    pub fn limited(&self) -> Option<&Limited> {
        self.choices()?.limited()
    }

    /// The cost of a delivery of the message.
    pub fn cost(&self) -> u64 {
        let takes = self.choices().and_then(Choices::takes);
        takes.map_or(1, |takes| takes.cost)
    }

    /// The batch that it waits for or has waited for, if any.
    pub fn after(&self) -> Option<&After> {
        self.choices()?.batching()?.after.as_ref()
    }

    /// The children that it waits for or has waited for, if any.
    pub fn children(&self) -> Option<&Children> {
        self.choices()?.children()
    }

    /// The text of the signal that was sent to it, if one was.
    pub fn signal(&self) -> Option<&[u8]> {
        Some(&self.left()?.signal()?.text)
    }

    /// Texts from consumers and the reason of its death, if any.
    pub fn texts(&self) -> Option<&Texts> {
        self.extension()?.texts.as_deref()
    }

    /// The last failed attempts that ERRORS keeps, the oldest first.
    pub fn errors(&self) -> &[FailedAttempt] {
        let errors = self.extension().and_then(|ext| ext.errors.as_ref());
        errors.map_or(&[], |errors| errors.list())
    }

    /// Nacks and lease timeouts so far.
    pub fn failures(&self) -> u32 {
        self.extension().map_or(0, |ext| ext.failures)
    }

    /// Whether it has failed, so that it may hold its group while it is pending. A
    /// message that was snoozed since does not.
    pub fn has_failed(&self) -> bool {
        self.failures() > 0 && !self.texts().is_some_and(|texts| texts.snoozed)
    }

    /// The data that others left with the message, if there are any.
    pub fn left(&self) -> Option<&Left> {
        self.texts()?.left.as_deref()
    }

    /// The note that a consumer left with it, if any.
    pub fn note(&self) -> Option<&[u8]> {
        self.left()?.note()
    }

    /// Sets its note; an empty one removes it.
    pub fn set_note(&mut self, text: &[u8]) {
        if !text.is_empty() || self.note().is_some() {
            let note = (!text.is_empty()).then(|| text.into());
            self.change_left(|more| more.note = note);
        }
    }

    /// The message that is sent in its place when its run has ended, if there is one.
    pub fn rerun(&self) -> Option<&Rerun> {
        self.left()?.rerun()
    }

    /// Changes the data that is left with the message.
    pub fn change_left(&mut self, change: impl FnOnce(&mut More)) {
        Left::change(&mut self.extension_mut().texts_mut().left, change);
    }

    /// Lease timeouts so far; they are part of the failures.
    pub fn timeouts(&self) -> u32 {
        self.extension().map_or(0, |ext| ext.timeouts)
    }

    /// Its position in its group: its own score, or by default the due time.
    pub fn score(&self) -> Score {
        let own = self.choices().and_then(|choices| choices.score);
        own.unwrap_or_else(|| Score::of_time(self.score_base()))
    }

    /// When it finished, died or was cancelled, or NEVER.
    pub fn ended_at(&self) -> Millis {
        match self.stored {
            StoredState::Held => NEVER,
            _ => self.extension().map_or(NEVER, |ext| ext.ended_at),
        }
    }

    /// When it is or was due, as a client sees it.
    pub fn due_at(&self) -> Millis {
        self.extension().map_or(self.due, |ext| ext.due_at)
    }

    /// The due time that the default score is taken from.
    pub fn score_base(&self) -> Millis {
        self.extension().map_or(self.due, |ext| ext.score_base)
    }

    /// The due time that a TTL counts from.
    pub fn ttl_base(&self) -> Millis {
        self.extension().map_or(self.due, |ext| ext.ttl_base)
    }

    /// Receipt of the current delivery; 0 unless the message is running.
    pub fn receipt(&self) -> Receipt {
        self.history.receipt()
    }

    /// Start of the first delivery, or NEVER.
    pub fn first_started_at(&self) -> Millis {
        self.history.started_at(self.due).0
    }

    /// Start of the last delivery, or NEVER.
    pub fn started_at(&self) -> Millis {
        self.history.started_at(self.due).1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_message_takes_48_bytes() {
        assert_eq!(size_of::<Message>(), 48);
        assert_eq!(size_of::<Option<Message>>(), 48);
    }
}
