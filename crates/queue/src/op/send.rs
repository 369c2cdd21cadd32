//! The messages of a SEND, an ACKSEND or a schedule, with their options.

use std::borrow::Cow;

use smallvec::SmallVec;

use super::Op;
use crate::message::due_time::DueTime;
use crate::message::Choices;
use crate::schedule::recurrence::Recurrence;
use crate::schedule::{Limits, Missed, Overlap};
use crate::{Millis, Receipt};

/// Messages to send: either all of them are added or none.
#[derive(Debug, Clone, PartialEq)]
pub struct Send<'a> {
    /// The payload of each message.
    pub payloads: SmallVec<[&'a [u8]; 1]>,
    /// The id, if one is given. Then there is only one payload.
    pub id: Option<Cow<'a, [u8]>>,
    /// Whether a pending, dead or cancelled message with this id is replaced.
    pub replace: bool,
    /// Whether this one waits for the end of the run of a running message with this id.
    /// It replaces what waits for that already. Only with `replace`.
    pub rerun: bool,
    /// When the messages become due.
    pub due: DueTime,
    /// The group of the messages, if any.
    pub group: Option<Cow<'a, [u8]>>,
    /// The priority; lower goes first.
    pub priority: i8,
    /// All other options of the messages.
    pub choices: Choices,
    /// Whether nothing is sent unless the group has a pending or running message.
    pub if_group: bool,
    /// The deduplication id, if one is given. Then there is only one payload.
    pub dedup: Option<Box<DedupId>>,
    /// A random number that becomes the salt of the ids which the queue generates from
    /// this operation on. It is set where a copy of the queue may have generated ids
    /// elsewhere, so that both do not generate the same ones. Then no id is given.
    pub new_salt: Option<u64>,
}

impl<'a> Send<'a> {
    /// One message without options, due now.
    pub fn plain(payload: &'a [u8]) -> Send<'a> {
        Send {
            payloads: SmallVec::from_slice(&[payload]),
            id: None,
            replace: false,
            rerun: false,
            due: DueTime::Now,
            group: None,
            priority: 0,
            choices: Choices::default(),
            if_group: false,
            dedup: None,
            new_salt: None,
        }
    }
}

/// A deduplication id: the message is not sent if one was sent with the same within its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DedupId {
    /// The deduplication id.
    pub name: Box<[u8]>,
    /// How long it counts from the send, in ms; at least 1.
    pub ms: Millis,
}

/// The end of a delivery and the messages that follow from it, or the part of
/// that which concerns one queue.
#[derive(Debug, Clone, PartialEq)]
pub struct AckSend<'a> {
    /// The receipt of the delivery to finish. `None` in a queue that only
    /// receives messages.
    pub receipt: Option<Receipt>,
    /// The result text to keep with the finished message.
    pub result: Option<Cow<'a, [u8]>>,
    /// The messages to send.
    pub sends: Vec<Send<'a>>,
    /// The signals to send after that.
    pub signals: Vec<Signal<'a>>,
}

/// A signal to a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signal<'a> {
    /// The id of the message.
    pub id: Cow<'a, [u8]>,
    /// The text of the signal; at most 64 KiB.
    pub text: Cow<'a, [u8]>,
}

/// A schedule to create.
#[derive(Debug, Clone, PartialEq)]
pub struct NewSchedule<'a> {
    /// Its name.
    pub name: Cow<'a, [u8]>,
    /// When it fires.
    pub rule: Recurrence,
    /// The message that it sends: one payload and no id, due when the schedule fires.
    pub send: Send<'a>,
    /// The treatment of fire times that were missed.
    pub missed: Missed,
    /// Whether it fires while its last message has not ended.
    pub overlap: Overlap,
    /// When it ends, and how far its messages are spread.
    pub limits: Option<Box<Limits>>,
}

impl<'a> Op<'a> {
    /// This operation with a new salt for the ids that it generates. `None` if it
    /// generates none.
    pub fn with_new_salt(&self, random: impl FnOnce() -> u64) -> Option<Op<'a>> {
        match self {
            Op::Send(send) if send.id.is_none() => {
                let new_salt = Some(random());
                let send = send.clone();
                Some(Op::Send(Send { new_salt, ..send }))
            }
            Op::AckSend(ack_send) => {
                let first = ack_send.sends.iter().position(|send| send.id.is_none())?;
                let mut renewed = ack_send.clone();
                renewed.sends.get_mut(first)?.new_salt = Some(random());
                Some(Op::AckSend(renewed))
            }
            _ => None,
        }
    }
}
