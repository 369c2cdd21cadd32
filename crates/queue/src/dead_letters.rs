//! Dead messages that go to another queue (DEADTO).
//!
//! A message that dies becomes a dead record first, whatever becomes of it then: so it is never
//! lost. The server sends it to the other queue in the same replicated command, and tells this one
//! with [`Moved`], which removes the record. Messages that could not go stay dead records here.

use std::borrow::Cow;
use std::collections::VecDeque;

use crate::collections::footprint::allocated;
use crate::message::state::Reason;
use crate::message::Header;
use crate::sums::Count;
use crate::{Millis, Seq, IS_SMALL};

/// The queue to which messages go that die, and which of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadTo {
    /// The key of the other queue; never empty.
    pub key: Box<[u8]>,
    /// The reasons of death for which messages go, as bits by their numbers; 0 for all.
    pub reasons: u8,
}

impl DeadTo {
    /// Whether messages go that die for this reason.
    pub fn takes(&self, reason: Reason) -> bool {
        self.reasons == 0 || self.reasons & bit(reason) != 0
    }

    /// The named reasons; none means all.
    pub fn named(&self) -> impl Iterator<Item = Reason> + '_ {
        let all = Reason::ALL.into_iter();
        all.filter(|reason| self.reasons & bit(*reason) != 0)
    }
}

/// The bit of a reason in [`DeadTo::reasons`].
pub fn bit(reason: Reason) -> u8 {
    1 << reason as u8
}

/// The most queues that one message goes to, one after the other, so that a circle ends.
pub const MAX_HOPS: u64 = 8;

/// The reason why a message could not go. The numbers are part of the log format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Stays {
    /// The message would go to the queue in which it is.
    Itself = 1,
    /// The other key is in another slot of the cluster.
    Slot = 2,
    /// The other key holds another type.
    Type = 3,
    /// The other queue takes no new messages.
    Closed = 4,
    /// The other queue is full.
    Full = 5,
    /// The message has gone through as many queues as it may.
    Hops = 6,
}

impl Stays {
    /// All reasons.
    pub const ALL: [Stays; 6] = [
        Stays::Itself,
        Stays::Slot,
        Stays::Type,
        Stays::Closed,
        Stays::Full,
        Stays::Hops,
    ];

    /// The obstacle, in words.
    pub fn text(self) -> &'static str {
        match self {
            Stays::Itself => "DEADTO names the queue itself",
            Stays::Slot => "the key of DEADTO is in another slot",
            Stays::Type => "the key of DEADTO holds another type",
            Stays::Closed => "the queue of DEADTO takes no new messages (SENDS OFF)",
            Stays::Full => "the queue of DEADTO is full (MAXLEN or MAXBYTES)",
            Stays::Hops => "the message has gone through 8 queues",
        }
    }

    /// The reason with this number in a log entry or a snapshot; `None` if there is none.
    pub fn from_u8(n: u8) -> Option<Stays> {
        Stays::ALL.into_iter().find(|stays| *stays as u8 == n)
    }
}

/// The outcome of dead messages that were to go to another queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Moved<'a> {
    /// The messages that have gone: their numbers, and their new ids where the other queue had
    /// their own ids already.
    pub gone: Vec<(Seq, Option<Cow<'a, [u8]>>)>,
    /// The reason why the other messages stay, if any does.
    pub stays: Option<Stays>,
}

/// A dead message on its way to another queue.
#[derive(Debug, Clone, PartialEq)]
pub struct Letter {
    /// Its number here.
    pub seq: Seq,
    /// Its id.
    pub id: Box<[u8]>,
    /// Its payload.
    pub payload: Box<[u8]>,
    /// Its group, if it has one.
    pub group: Option<Box<[u8]>>,
    /// Its type, if it has one.
    pub label: Option<Box<[u8]>>,
    /// Its headers, and those about its death.
    pub headers: Box<[Header]>,
}

/// A message that has gone to another queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// Its id here.
    pub id: Box<[u8]>,
    /// The key that it went to.
    pub to: Box<[u8]>,
    /// Its id there, if that is another one.
    pub new_id: Option<Box<[u8]>>,
    /// The reason of its death.
    pub reason: Reason,
    /// When it died (Unix ms).
    pub at: Millis,
}

/// The most messages that are remembered after they have gone.
pub const MOST_TRACES: usize = if IS_SMALL { 3 } else { 1000 };

/// The state of a queue about messages that were to go to another queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeadLetters {
    /// How many messages have gone.
    pub moved: Count,
    /// The last messages that have gone, in order.
    pub traces: VecDeque<Trace>,
    /// The reason why messages could not go, and the time of that (Unix ms), unless some went
    /// since.
    pub stays: Option<(Stays, Millis)>,
}

impl DeadLetters {
    /// Remembers a message that has gone.
    pub fn remember(&mut self, trace: Trace) {
        if self.traces.len() >= MOST_TRACES {
            self.traces.pop_front();
        }
        self.traces.push_back(trace);
    }

    /// Bytes allocated, roughly.
    pub fn memory_bytes(&self) -> usize {
        let texts = self.traces.iter().map(|trace| {
            let new_id = trace.new_id.as_ref();
            allocated(trace.id.len())
                + allocated(trace.to.len())
                + new_id.map_or(0, |id| allocated(id.len()))
        });
        allocated(size_of::<DeadLetters>())
            + self.traces.capacity() * size_of::<Trace>()
            + texts.sum::<usize>()
    }

    /// The last message with this id that has gone.
    pub fn trace(&self, id: &[u8]) -> Option<&Trace> {
        self.traces.iter().rev().find(|trace| *trace.id == *id)
    }
}
