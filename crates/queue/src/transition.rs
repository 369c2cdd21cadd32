//! Transitions of messages, in the form of the event stream of a queue (EVENTS).

use crate::message::state::Reason;
use crate::Millis;

/// The name of an event stream and the most entries that are kept in it.
pub const DEFAULT_EVENTS_LEN: u64 = 10_000;

/// The kind of a transition of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The message was sent.
    Sent,
    /// The message has become due, or has come back. It waits for a consumer, or for its group.
    Ready,
    /// The message was given to a consumer.
    Delivered,
    /// A consumer has finished the message.
    Acked,
    /// A consumer has given the message back.
    Nacked,
    /// The lease ran out, or its connection was closed.
    Timeout,
    /// The message died.
    Dead,
    /// The message was cancelled.
    Cancelled,
    /// The batch that held the message has ended.
    Released,
    /// A consumer has left a note, or removed it.
    Noted,
    /// Another message has replaced it and has its id.
    Replaced,
    /// The message was dead, and is pending again.
    Redriven,
    /// The message was given another due time.
    Rescheduled,
    /// The message was removed. Without an id: all messages were.
    Purged,
}

impl Kind {
    const ALL: [Kind; 14] = [
        Kind::Sent,
        Kind::Ready,
        Kind::Delivered,
        Kind::Acked,
        Kind::Nacked,
        Kind::Timeout,
        Kind::Dead,
        Kind::Cancelled,
        Kind::Released,
        Kind::Noted,
        Kind::Replaced,
        Kind::Redriven,
        Kind::Rescheduled,
        Kind::Purged,
    ];

    /// The name of the event in the stream.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Sent => "sent",
            Kind::Ready => "ready",
            Kind::Delivered => "delivered",
            Kind::Acked => "acked",
            Kind::Nacked => "nacked",
            Kind::Timeout => "timeout",
            Kind::Dead => "dead",
            Kind::Cancelled => "cancelled",
            Kind::Released => "released",
            Kind::Noted => "noted",
            Kind::Replaced => "replaced",
            Kind::Redriven => "redriven",
            Kind::Rescheduled => "rescheduled",
            Kind::Purged => "purged",
        }
    }

    /// Whether a consumer has to do with it.
    pub fn is_of_consumer(self) -> bool {
        matches!(
            self,
            Kind::Delivered | Kind::Acked | Kind::Nacked | Kind::Timeout | Kind::Dead | Kind::Noted
        )
    }
}

/// Whether an entry of a stream that begins with these fields and values is a transition, or one that a
/// client of dq has added for its own readers, which begins with the field `dq` and the value `client`.
pub fn is_transition(fields: &[(&[u8], &[u8])]) -> bool {
    if matches!(fields, [(b"dq", b"client"), ..]) {
        return true;
    }
    let [(b"event", kind), rest @ ..] = fields else {
        return false;
    };
    let is_kind = Kind::ALL.iter().any(|one| one.name().as_bytes() == *kind);
    let rest = match rest {
        [(b"id", _), rest @ ..] => rest,
        _ => rest,
    };
    let is_number = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    is_kind && matches!(rest, [(b"at", at), ..] if is_number(at))
}

/// One transition of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    /// The kind of the transition.
    pub kind: Kind,
    /// When it happened, in Unix ms.
    pub at: Millis,
    /// The id of the message; empty if all messages were purged.
    pub id: Box<[u8]>,
    /// Its group, if it has one.
    pub group: Option<Box<[u8]>>,
    /// Its type, if it has one.
    pub label: Option<Box<[u8]>>,
    /// The number of its last attempt; 0 before the first.
    pub attempt: u32,
    /// The consumer of the delivery, if there is one with a name.
    pub consumer: Option<Box<[u8]>>,
    /// The reason of its death, if it died.
    pub reason: Option<Reason>,
    /// The time from then to its due time, in ms, if it is not due at once.
    pub delay: Option<Millis>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_entries_that_a_queue_has_written_are_transitions() {
        for kind in Kind::ALL {
            let event = (&b"event"[..], kind.name().as_bytes());
            let at = (&b"at"[..], &b"5000"[..]);
            assert!(is_transition(&[event, (b"id", b"a"), at]));
            assert!(is_transition(&[event, at]));
            assert!(!is_transition(&[event]));
            assert!(!is_transition(&[event, (b"id", b"a"), (b"at", b"noon")]));
            assert!(!is_transition(&[(b"id", b"a"), event, at]));
        }
        assert!(!is_transition(&[(b"event", b"login"), (b"at", b"5000")]));
        assert!(is_transition(&[(b"dq", b"client"), (b"event", b"login")]));
        assert!(!is_transition(&[(b"event", b"login"), (b"dq", b"client")]));
        assert!(!is_transition(&[]));
    }
}
