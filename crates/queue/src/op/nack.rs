//! A NACK: the outcome of a delivery that is given back.

use crate::message::after::Park;
use crate::Millis;

/// The effect of a nack on the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NackKind {
    /// The delivery failed. The message waits for its backoff, or dies if it is
    /// out of retries.
    Backoff,
    /// The delivery failed. The message waits for this many ms, or dies if it
    /// is out of retries.
    Delay(Millis),
    /// The delivery counts neither as an attempt nor as a failure.
    Silent,
    /// The delivery counts neither as an attempt nor as a failure. The message is
    /// delayed for this many ms, at least 1.
    Snooze(Millis),
    /// The message dies without another attempt.
    Fatal,
    /// The delivery counts neither as an attempt nor as a failure. The message waits for
    /// a signal.
    Park(Park),
}

/// A pause that begins with a nack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NackPause {
    /// The target of the pause.
    pub of: Paused,
    /// How long from now, in ms; at least 1.
    pub ms: Millis,
}

/// The target of a pause by a nack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paused {
    /// The group of each message that is nacked.
    Group,
    /// The queue.
    Queue,
}
