//! The part of a message that only some messages have: options, texts, and more
//! than one delivery.

use super::errors::{Errors, FailedAttempt};
use super::left::Left;
use super::state::Reason;
use super::Choices;
use crate::{ConsumerIx, Millis, Receipt, NEVER};

/// Texts from consumers, and why the message died.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Texts {
    /// The text of the last error, if a consumer gave one.
    pub error: Option<Box<[u8]>>,
    /// The result given with the ack, if any.
    pub result: Option<Box<[u8]>>,
    /// The data that others left with the message, if there are any.
    pub left: Option<Box<Left>>,
    /// The reason of its death, if it died.
    pub reason: Option<Reason>,
    /// Whether it has failed and was snoozed since, so that it no longer holds its
    /// group as a failed one.
    pub snoozed: bool,
}

/// The state of a message with options of its own or more than one delivery.
#[derive(Debug, Clone, PartialEq)]
pub struct Extension {
    /// The options that SEND gave for this message.
    pub choices: Option<Box<Choices>>,
    /// Texts from consumers, and why the message died.
    pub texts: Option<Box<Texts>>,
    /// The last failed attempts, where ERRORS keeps any.
    pub errors: Option<Box<Errors>>,
    /// Receipt of the current delivery; 0 unless the message is running.
    pub receipt: Receipt,
    /// Start of the first delivery, or NEVER.
    pub first_started_at: Millis,
    /// Start of the last delivery, or NEVER.
    pub started_at: Millis,
    /// When it finished, died or was cancelled, or, while it is parked, when it was parked; else
    /// NEVER.
    pub ended_at: Millis,
    /// The due time that a client sees: the given one, or the end of the last backoff.
    /// After a lease timeout the message is ready from the timeout on, though this is
    /// earlier.
    pub due_at: Millis,
    /// The due time that the default score is taken from.
    pub score_base: Millis,
    /// The due time that a TTL counts from.
    pub ttl_base: Millis,
    /// Deliveries so far, without those that did not count as attempts.
    pub attempt: u32,
    /// Nacks and lease timeouts so far.
    pub failures: u32,
    /// Lease timeouts so far; they are part of `failures`.
    pub timeouts: u32,
    /// The consumer of the last delivery.
    pub consumer: ConsumerIx,
}

impl Extension {
    /// The extension of a message with this due time that was never delivered.
    pub const fn new(due: Millis) -> Extension {
        Extension {
            choices: None,
            texts: None,
            errors: None,
            receipt: 0,
            first_started_at: NEVER,
            started_at: NEVER,
            ended_at: NEVER,
            due_at: due,
            score_base: due,
            ttl_base: due,
            attempt: 0,
            failures: 0,
            timeouts: 0,
            consumer: ConsumerIx::NONE,
        }
    }

    /// The notes, allocated if there are none yet.
    pub fn texts_mut(&mut self) -> &mut Texts {
        self.texts.get_or_insert_default()
    }

    /// Keeps a failed attempt, and of all of them the last `most`.
    pub fn fail(&mut self, failed: FailedAttempt, most: u8) {
        self.errors = Errors::with(self.errors.take(), failed, most.into());
    }

    /// Records the start of a delivery. `receipt` is 0 if no ack is expected.
    pub fn start(&mut self, now: Millis, receipt: Receipt, consumer: ConsumerIx) {
        if self.first_started_at == NEVER {
            self.first_started_at = now;
        }
        self.started_at = now;
        self.receipt = receipt;
        self.consumer = consumer;
        self.attempt = self.attempt.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extension_takes_96_bytes() {
        // A size class of the allocator.
        assert_eq!(size_of::<Extension>(), 96);
    }

    #[test]
    fn later_deliveries_leave_the_time_of_the_first_one() {
        let mut extension = Extension::new(5);
        for now in [7, 9, 11] {
            extension.start(now, now, ConsumerIx::NONE);
            assert_eq!(extension.first_started_at, 7);
            assert_eq!(extension.started_at, now);
        }
        assert_eq!(extension.attempt, 3);
    }
}
