//! What only some messages have.
//!
//! Every message that runs has an extension, so it is small. What is left of
//! deliveries that failed, of what SEND said and of an end hangs off one more
//! pointer: few of those that run have any of it.

use super::consumer::ConsumerIx;
use super::footprint::allocated;
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

/// The last delivery of a message, and what few messages have.
#[derive(Debug, Clone, PartialEq)]
pub struct Extension {
    /// Receipt of the present delivery; 0 unless running.
    pub receipt: Receipt,
    /// Start of the last delivery, or NEVER.
    pub started_at: Millis,
    /// Deliveries so far, less those that cost no attempt.
    pub attempt: u32,
    /// Who had the last delivery.
    pub consumer: ConsumerIx,
    /// What few have.
    rare: Option<Box<Rare>>,
}

/// What few messages have. Where there is none, a message was delivered once
/// at most, has not failed, and all that follows its due time is that time.
#[derive(Debug, Clone, PartialEq)]
pub struct Rare {
    /// What SEND said.
    pub choices: Option<Box<Choices>>,
    /// Texts and the end.
    pub notes: Option<Box<Notes>>,
    /// Start of the first delivery, or NEVER.
    pub first_started_at: Millis,
    /// When it finished, died or was cancelled, or NEVER.
    pub ended_at: Millis,
    /// The due time given, or the end of the last backoff: what a client sees
    /// as its due time, though after a lease timeout it is ready since then.
    pub due_at: Millis,
    /// The due time that a default score follows.
    pub score_base: Millis,
    /// The due time that a TTL counts from.
    pub ttl_base: Millis,
    /// Nacks and lease timeouts so far.
    pub failures: u32,
    /// Lease timeouts among them.
    pub timeouts: u32,
}

impl Extension {
    /// That of a message that was never delivered.
    pub const fn new() -> Extension {
        Extension {
            receipt: 0,
            started_at: NEVER,
            attempt: 0,
            consumer: ConsumerIx::NONE,
            rare: None,
        }
    }

    /// What few messages have, if it has any of it.
    pub fn rare(&self) -> Option<&Rare> {
        self.rare.as_deref()
    }

    /// The same, to change.
    pub fn rare_if_any(&mut self) -> Option<&mut Rare> {
        self.rare.as_deref_mut()
    }

    /// What few messages have, made when first needed: before the due time of
    /// the message changes, which is `due`.
    pub fn rare_mut(&mut self, due: Millis) -> &mut Rare {
        let started_at = self.started_at;
        self.rare
            .get_or_insert_with(|| Box::new(Rare::new(due, started_at)))
    }

    /// Start of the first delivery, or NEVER.
    pub fn first_started_at(&self) -> Millis {
        self.rare()
            .map_or(self.started_at, |rare| rare.first_started_at)
    }

    /// Sets when the first and the last delivery of a message with this due
    /// time started.
    pub fn set_started(&mut self, first: Millis, last: Millis, due: Millis) {
        if first != last || self.rare.is_some() {
            self.rare_mut(due).first_started_at = first;
        }
        self.started_at = last;
    }

    /// A delivery of a message with this due time starts.
    pub fn start(&mut self, now: Millis, due: Millis) {
        let first = match self.first_started_at() {
            NEVER => now,
            first => first,
        };
        self.set_started(first, now, due);
        self.attempt = self.attempt.saturating_add(1);
    }

    /// The bytes it takes, without what choices and notes have allocated.
    pub fn bytes(&self) -> usize {
        const EXTENSION: usize = allocated(size_of::<Extension>());
        const RARE: usize = allocated(size_of::<Rare>());
        EXTENSION + self.rare().map_or(0, |_| RARE)
    }
}

impl Default for Extension {
    fn default() -> Extension {
        Extension::new()
    }
}

impl Rare {
    fn new(due: Millis, started_at: Millis) -> Rare {
        Rare {
            choices: None,
            notes: None,
            first_started_at: started_at,
            ended_at: NEVER,
            due_at: due,
            score_base: due,
            ttl_base: due,
            failures: 0,
            timeouts: 0,
        }
    }

    /// The texts, made when first needed.
    pub fn notes_mut(&mut self) -> &mut Notes {
        self.notes.get_or_insert_with(Default::default)
    }
}

/// Extensions that are in no use.
#[derive(Debug, Default)]
pub struct Spare {
    // Boxes, because they go from message to message as they are.
    #[allow(clippy::vec_box)]
    boxes: Vec<Box<Extension>>,
}

impl Spare {
    /// So many are kept, whatever the queue has ...
    const SOME: usize = 128;
    /// ... and one for so many of its messages, which is less than a hundredth of
    /// what those take ...
    const SHARE: usize = 32;
    /// ... up to so many: they are freed at once.
    const MOST: usize = 4096;

    /// An extension as new.
    pub fn take(&mut self) -> Box<Extension> {
        self.boxes.pop().unwrap_or_default()
    }

    /// Keeps an extension for later, in a queue of so many messages. Where that has
    /// enough of them, gives it back, and another one: the queue has become smaller.
    pub fn keep(&mut self, mut extension: Box<Extension>, messages: usize) {
        let enough = (messages / Spare::SHARE).clamp(Spare::SOME, Spare::MOST);
        if self.boxes.len() < enough {
            *extension = Extension::new();
            self.boxes.push(extension);
        } else if self.boxes.len() > enough {
            self.boxes.pop();
            if self.boxes.len() * 4 < self.boxes.capacity() {
                self.boxes.shrink_to(self.boxes.len() * 2);
            }
        }
    }

    /// Bytes allocated.
    pub fn memory_bytes(&self) -> usize {
        const EXTENSION: usize = allocated(size_of::<Extension>());
        self.boxes.len() * EXTENSION + self.boxes.capacity() * size_of::<Box<Extension>>()
    }
}

impl Clone for Spare {
    /// A copy of a queue begins without any.
    fn clone(&self) -> Spare {
        Spare::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_runs_for_the_first_time_takes_32_bytes_more() {
        assert_eq!(size_of::<Extension>(), 32);
        let mut extension = Extension::new();
        extension.start(7, 5);
        assert_eq!(extension.bytes(), 32);
        assert_eq!(extension.first_started_at(), 7);
    }

    #[test]
    fn what_is_spared_follows_the_queue_as_it_grows_and_shrinks() {
        let mut spare = Spare::default();
        let count = |spare: &Spare| spare.boxes.len();
        for messages in (0..1_000_000).rev() {
            spare.keep(Box::default(), messages);
            let enough = (messages / Spare::SHARE).clamp(Spare::SOME, Spare::MOST);
            assert!(count(&spare) <= enough + 1, "{messages}");
        }
        assert_eq!(count(&spare), Spare::SOME);
        assert!(spare.memory_bytes() <= Spare::SOME * (32 + 4 * 8));
        (0..Spare::SOME + 1).for_each(|_| drop(spare.take()));
        assert_eq!(count(&spare), 0);
    }

    #[test]
    fn the_first_start_is_kept_when_others_follow() {
        let mut extension = Extension::new();
        for now in [7, 9, 11] {
            extension.start(now, 5);
            assert_eq!(extension.first_started_at(), 7);
            assert_eq!(extension.started_at, now);
        }
        assert_eq!(extension.attempt, 3);
    }

    #[test]
    fn what_follows_the_due_time_is_that_time_until_told_otherwise() {
        let mut extension = Extension::new();
        extension.rare_mut(5).failures = 1;
        extension.start(7, 6);
        assert_eq!(extension.first_started_at(), 7);
        let rare = extension.rare_mut(6);
        assert_eq!((rare.due_at, rare.score_base, rare.ttl_base), (5, 5, 5));
    }
}
