//! One message and what is known of it.
//!
//! A plain waiting message costs 48 bytes here plus its payload: what only
//! some messages have (deliveries, options of their own, texts) hangs off one
//! pointer that is empty until it is needed: its extension.

use super::extension::{Extension, Notes, Rare};
use super::footprint::allocated;
use super::group::GroupIx;
use super::settings::Backoff;
use super::state::Place;
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

    /// What few messages have, if it has any of it.
    pub fn rare(&self) -> Option<&Rare> {
        self.ext.as_ref()?.rare()
    }

    /// The same, made when first needed: before its due time changes.
    pub fn rare_mut(&mut self) -> &mut Rare {
        self.ext.get_or_insert_default().rare_mut(self.due)
    }

    /// What SEND said, if it said anything.
    pub fn choices(&self) -> Option<&Choices> {
        self.rare()?.choices.as_deref()
    }

    /// Texts and the end, if there are any.
    pub fn notes(&self) -> Option<&Notes> {
        self.rare()?.notes.as_deref()
    }

    /// Nacks and lease timeouts so far.
    pub fn failures(&self) -> u32 {
        self.rare().map_or(0, |rare| rare.failures)
    }

    /// Lease timeouts among them.
    pub fn timeouts(&self) -> u32 {
        self.rare().map_or(0, |rare| rare.timeouts)
    }

    /// Its place in its group.
    pub fn score(&self) -> f64 {
        let own = self.choices().and_then(|choices| choices.score);
        own.unwrap_or(self.score_base() as f64)
    }

    /// When it finished, died or was cancelled, or NEVER.
    pub fn ended_at(&self) -> Millis {
        self.rare().map_or(NEVER, |rare| rare.ended_at)
    }

    /// When it is or was due, as a client sees it.
    pub fn due_at(&self) -> Millis {
        self.rare().map_or(self.due, |rare| rare.due_at)
    }

    /// The due time that a default score follows.
    pub fn score_base(&self) -> Millis {
        self.rare().map_or(self.due, |rare| rare.score_base)
    }

    /// The due time that a TTL counts from.
    pub fn ttl_base(&self) -> Millis {
        self.rare().map_or(self.due, |rare| rare.ttl_base)
    }

    /// Receipt of the present delivery; 0 unless running.
    pub fn receipt(&self) -> Receipt {
        self.ext.as_ref().map_or(0, |ext| ext.receipt)
    }

    /// The bytes of its extension, without what choices and notes have
    /// allocated.
    pub fn extension_bytes(&self) -> usize {
        self.ext.as_ref().map_or(0, |ext| ext.bytes())
    }

    /// The bytes it takes beyond its own 48: what it has allocated.
    pub fn heap_bytes(&self) -> usize {
        let text = |text: &Option<Box<[u8]>>| text.as_ref().map_or(0, |t| allocated(t.len()));
        let mut bytes = allocated(self.body.len()) + self.extension_bytes();
        if let Some(choices) = self.choices() {
            bytes += allocated(size_of::<Choices>()) + text(&choices.label);
            bytes += allocated(choices.headers.len() * size_of::<Header>());
            for (field, value) in choices.headers.iter() {
                bytes += allocated(field.len()) + allocated(value.len());
            }
        }
        if let Some(notes) = self.notes() {
            bytes += allocated(size_of::<Notes>()) + text(&notes.error) + text(&notes.result);
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
