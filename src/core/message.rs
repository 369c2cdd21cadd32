//! One message and what is known of it.
//!
//! A plain waiting message costs 48 bytes here plus its payload: what only
//! some messages have (options of their own, deliveries, texts) hangs off one
//! pointer that is empty until it is needed.

use super::consumer::ConsumerIx;
use super::group::GroupIx;
use super::settings::Backoff;
use super::state::{Place, Reason};
use super::{Millis, Receipt, NEVER};

/// A named value that travels with a message.
pub type Header = (Box<[u8]>, Box<[u8]>);

/// What SEND said of a message beyond payload, id, due time, group and
/// priority.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Choices {
    /// Its place in its group; `None` for the default, the due time.
    pub score: Option<f64>,
    /// Its own lease time, in ms.
    pub lease: Option<Millis>,
    /// Its own number of forgiven failures.
    pub retries: Option<i64>,
    /// Its own backoff.
    pub backoff: Option<Backoff>,
    /// Its own time to live, in ms; 0 for no end.
    pub ttl: Option<Millis>,
    /// A free label.
    pub label: Option<Box<[u8]>>,
    /// Named values, in the order they were given.
    pub headers: Box<[Header]>,
}

impl Choices {
    /// Whether nothing was said, so that nothing need be kept.
    pub fn is_default(&self) -> bool {
        let Choices {
            score,
            lease,
            retries,
            backoff,
            ttl,
            label,
            headers,
        } = self;
        score.is_none()
            && lease.is_none()
            && retries.is_none()
            && backoff.is_none()
            && ttl.is_none()
            && label.is_none()
            && headers.is_empty()
    }
}

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

/// What only some messages have.
#[derive(Debug, Clone, PartialEq)]
pub struct Extension {
    /// What SEND said.
    pub choices: Option<Box<Choices>>,
    /// Texts and the end.
    pub notes: Option<Box<Notes>>,
    /// Receipt of the present delivery; 0 unless running.
    pub receipt: Receipt,
    /// First receipt of the batch of the present delivery.
    pub batch: Receipt,
    /// When the present lease ends.
    pub lease_until: Millis,
    /// Start of the last delivery, or NEVER.
    pub started_at: Millis,
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
    /// That of a message that was never delivered, with this due time.
    pub fn new(due: Millis) -> Extension {
        Extension {
            choices: None,
            notes: None,
            receipt: 0,
            batch: 0,
            lease_until: NEVER,
            started_at: NEVER,
            first_started_at: NEVER,
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
    /// More than these are given back.
    const MOST: usize = 128;

    /// An extension as new, for a message with this due time.
    pub fn take(&mut self, due: Millis) -> Box<Extension> {
        match self.boxes.pop() {
            Some(mut spare) => {
                *spare = Extension::new(due);
                spare
            }
            None => Box::new(Extension::new(due)),
        }
    }

    /// Keeps an extension for later.
    pub fn keep(&mut self, extension: Box<Extension>) {
        if self.boxes.len() < Spare::MOST {
            self.boxes.push(extension);
        }
    }
}

impl Clone for Spare {
    /// A copy of a queue begins without any.
    fn clone(&self) -> Spare {
        Spare::default()
    }
}

/// One message.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Since when it is or was ready, or when it will be: its due time, the end
    /// of its backoff or of the lease that ran out.
    pub due: Millis,
    /// When it was sent.
    pub sent_at: Millis,
    /// The id, if one was given, followed by the payload: one allocation.
    body: Box<[u8]>,
    /// What only some messages have.
    pub ext: Option<Box<Extension>>,
    /// Its group, or [`GroupIx::NONE`].
    pub group: GroupIx,
    /// Length of the id at the start of `body`; 0 where it is generated.
    id_len: u16,
    /// Lower goes first.
    pub priority: i8,
    /// Where it stands.
    pub place: Place,
}

impl Message {
    /// A message as just sent; it stands nowhere yet.
    pub fn new(id: Option<&[u8]>, payload: &[u8], sent_at: Millis, due: Millis) -> Message {
        let id = id.unwrap_or_default();
        Message {
            due,
            sent_at,
            body: join(id, payload),
            ext: None,
            group: GroupIx::NONE,
            id_len: id.len() as u16,
            priority: 0,
            place: Place::Delayed,
        }
    }

    /// The id that was given with it, if one was.
    pub fn given_id(&self) -> Option<&[u8]> {
        match self.id_len {
            0 => None,
            n => self.body.get(..n as usize),
        }
    }

    /// What was sent, byte for byte.
    pub fn payload(&self) -> &[u8] {
        self.body.get(self.id_len as usize..).unwrap_or_default()
    }

    /// Puts another payload in the place of the one it had.
    pub fn set_payload(&mut self, payload: &[u8]) {
        let id = self.body.get(..self.id_len as usize).unwrap_or_default();
        self.body = join(id, payload);
    }

    /// What only some messages have, made when first needed.
    pub fn ext_mut(&mut self) -> &mut Extension {
        let due = self.due;
        self.ext
            .get_or_insert_with(|| Box::new(Extension::new(due)))
    }

    /// What SEND said, if it said anything.
    pub fn choices(&self) -> Option<&Choices> {
        self.ext.as_ref()?.choices.as_deref()
    }

    /// Texts and the end, if there are any.
    pub fn notes(&self) -> Option<&Notes> {
        self.ext.as_ref()?.notes.as_deref()
    }

    /// Nacks and lease timeouts so far.
    pub fn failures(&self) -> u32 {
        self.ext.as_ref().map_or(0, |e| e.failures)
    }

    /// Its place in its group.
    pub fn score(&self) -> f64 {
        match self.ext.as_ref() {
            None => self.due as f64,
            Some(ext) => match ext.choices.as_ref().and_then(|c| c.score) {
                Some(score) => score,
                None => ext.score_base as f64,
            },
        }
    }

    /// When it finished, died or was cancelled, or NEVER.
    pub fn ended_at(&self) -> Millis {
        self.ext.as_ref().map_or(NEVER, |e| e.ended_at)
    }

    /// When it is or was due, as a client sees it.
    pub fn due_at(&self) -> Millis {
        self.ext.as_ref().map_or(self.due, |e| e.due_at)
    }

    /// Receipt of the present delivery; 0 unless running.
    pub fn receipt(&self) -> Receipt {
        self.ext.as_ref().map_or(0, |e| e.receipt)
    }

    /// The bytes it takes beyond its own 48: what it has allocated.
    pub fn heap_bytes(&self) -> usize {
        let mut bytes = self.body.len();
        if let Some(ext) = &self.ext {
            bytes += size_of::<Extension>();
            if let Some(choices) = &ext.choices {
                bytes += size_of::<Choices>();
                bytes += choices.label.as_ref().map_or(0, |l| l.len());
                for (field, value) in choices.headers.iter() {
                    bytes += size_of::<Header>() + field.len() + value.len();
                }
            }
            if let Some(notes) = &ext.notes {
                bytes += size_of::<Notes>();
                bytes += notes.error.as_ref().map_or(0, |t| t.len());
                bytes += notes.result.as_ref().map_or(0, |t| t.len());
            }
        }
        bytes
    }
}

/// Two byte strings in one allocation of just their size.
fn join(id: &[u8], payload: &[u8]) -> Box<[u8]> {
    if id.is_empty() {
        return payload.into();
    }
    let mut body = Vec::with_capacity(id.len() + payload.len());
    body.extend_from_slice(id);
    body.extend_from_slice(payload);
    body.into_boxed_slice()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_message_takes_48_bytes() {
        assert_eq!(size_of::<Message>(), 48);
    }

    #[test]
    fn id_and_payload_share_one_allocation() {
        let mut m = Message::new(Some(b"order-7"), b"hello", 1, 2);
        assert_eq!(m.given_id(), Some(&b"order-7"[..]));
        assert_eq!(m.payload(), b"hello");
        m.set_payload(b"");
        assert_eq!(m.given_id(), Some(&b"order-7"[..]));
        assert_eq!(m.payload(), b"");
        let m = Message::new(None, b"x", 1, 2);
        assert_eq!(m.given_id(), None);
        assert_eq!(m.payload(), b"x");
    }
}
