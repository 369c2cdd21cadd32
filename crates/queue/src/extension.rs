//! What only some messages have.

use super::consumer::ConsumerIx;
use super::message::Choices;
use super::state::Reason;
use super::{Millis, Receipt, NEVER};

/// Texts of consumers and how it ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Notes {
    /// The last error text.
    pub error: Option<Box<[u8]>>,
    /// The result text of the ack.
    pub result: Option<Box<[u8]>>,
    /// Why it died.
    pub reason: Option<Reason>,
}

/// What there is to tell of a message beyond one delivery.
#[derive(Debug, Clone, PartialEq)]
pub struct Extension {
    /// What SEND said.
    pub choices: Option<Box<Choices>>,
    /// Texts and the end.
    pub notes: Option<Box<Notes>>,
    /// Receipt of the present delivery; 0 unless running.
    pub receipt: Receipt,
    /// Start of the first delivery, or NEVER.
    pub first_started_at: Millis,
    /// Start of the last delivery, or NEVER.
    pub started_at: Millis,
    /// When it finished, died or was cancelled, or NEVER.
    pub ended_at: Millis,
    /// The due time given, or the end of the last backoff: what a client sees
    /// as its due time, though after a lease timeout it is ready since then.
    pub due_at: Millis,
    /// The due time that a default score follows.
    pub score_base: Millis,
    /// The due time that a TTL counts from.
    pub ttl_base: Millis,
    /// Deliveries so far, less those that cost no attempt.
    pub attempt: u32,
    /// Nacks and lease timeouts so far.
    pub failures: u32,
    /// Lease timeouts among them.
    pub timeouts: u32,
    /// Who had the last delivery.
    pub consumer: ConsumerIx,
}

impl Extension {
    /// That of a message with this due time which was never delivered.
    pub const fn new(due: Millis) -> Extension {
        Extension {
            choices: None,
            notes: None,
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

    /// Texts and the end, made when first needed.
    pub fn notes_mut(&mut self) -> &mut Notes {
        self.notes.get_or_insert_default()
    }

    /// A delivery starts; the receipt is 0 where no ack is expected.
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
    fn what_some_messages_have_takes_88_bytes() {
        assert_eq!(size_of::<Extension>(), 88);
    }

    #[test]
    fn the_first_start_is_kept_when_others_follow() {
        let mut extension = Extension::new(5);
        for now in [7, 9, 11] {
            extension.start(now, now, ConsumerIx::NONE);
            assert_eq!(extension.first_started_at, 7);
            assert_eq!(extension.started_at, now);
        }
        assert_eq!(extension.attempt, 3);
    }
}
