//! The operations on a queue and their outcomes, as data.
//!
//! A client's command, a fetch that was blocked and is served, a slice of
//! background work and the replay of any of them are each one [`Op`], applied
//! at one [`Moment`]. So they all take the same way through the queue.

mod effects;
mod outcome;

use std::borrow::Cow;

use smallvec::SmallVec;

use crate::message::state::State;
use crate::message::Choices;
use crate::schedule::recurrence::Recurrence;
use crate::schedule::{Missed, Overlap};
use crate::settings::{Changes, Rate};
use crate::{Millis, Receipt, Seq};

pub use effects::{Effects, Ending, Happened};
pub use outcome::{Delivered, Deliveries, Done, Gone, Sent, Ticked};

/// The time of an operation, and which receipts it may give out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The queue clock of the server, in microseconds of Unix time.
    pub us: u64,
    /// The lowest receipt that the operation may give out: above every receipt
    /// that this server has given out or seen, in any queue.
    pub receipt: Receipt,
}

impl Moment {
    /// The moment at which the queue clock shows `us` microseconds.
    #[cfg(test)]
    pub fn at_us(us: u64) -> Moment {
        Moment { us, receipt: us }
    }

    /// The moment at which the queue clock shows `ms` milliseconds.
    #[cfg(test)]
    pub fn at_ms(ms: Millis) -> Moment {
        Moment::at_us(ms.saturating_mul(1000))
    }

    /// The queue clock in milliseconds of Unix time.
    pub fn ms(self) -> Millis {
        self.us / 1000
    }
}

/// The receipts that a command names. Up to four take no allocation.
pub type Receipts = SmallVec<[Receipt; 4]>;

/// When a message becomes due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DueTime {
    /// At once.
    #[default]
    Now,
    /// This many ms from now.
    After(Millis),
    /// At this Unix time in ms. A time in the past means now.
    At(Millis),
}

impl DueTime {
    /// The due time in Unix ms, as seen at `now`. A delay ends at 2^53-1 at the
    /// latest.
    pub fn from(self, now: Millis) -> Millis {
        match self {
            DueTime::Now => now,
            DueTime::After(delay) => now.saturating_add(delay).min(crate::MAX_EXACT),
            DueTime::At(at) => at.max(now),
        }
    }
}

/// Messages to send: either all of them are added or none.
#[derive(Debug, Clone, PartialEq)]
pub struct Send<'a> {
    /// The payload of each message.
    pub payloads: SmallVec<[&'a [u8]; 1]>,
    /// The id, if one is given. There is one payload then.
    pub id: Option<Cow<'a, [u8]>>,
    /// Whether a waiting message with this id is replaced.
    pub replace: bool,
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
    /// A random number that becomes the salt of the ids which the queue
    /// generates from this operation on. It is set where a copy of the queue
    /// may have generated ids elsewhere, so that both do not generate the same
    /// ones. There is no given id then.
    pub new_salt: Option<u64>,
}

impl<'a> Send<'a> {
    /// One message without options, due now.
    pub fn plain(payload: &'a [u8]) -> Send<'a> {
        Send {
            payloads: SmallVec::from_slice(&[payload]),
            id: None,
            replace: false,
            due: DueTime::Now,
            group: None,
            priority: 0,
            choices: Choices::default(),
            if_group: false,
            new_salt: None,
        }
    }
}

/// Which messages to deliver, and on which terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetch<'a> {
    /// The most messages to deliver; at least 1.
    pub count: u64,
    /// The lease of these deliveries in ms; `None` uses that of each message.
    pub lease: Option<Millis>,
    /// The name of the consumer that fetches.
    pub consumer: Option<Cow<'a, [u8]>>,
    /// Deliver only messages of this group.
    pub group: Option<Cow<'a, [u8]>>,
    /// The most messages in a row from one group; at least 1.
    pub per_group: u64,
    /// The most payload bytes of the batch. A message that would exceed it ends
    /// the batch, unless it is the first.
    pub max_bytes: Option<u64>,
    /// Deliveries to ack before anything is delivered.
    pub acks: Receipts,
    /// The result text of each of these deliveries, in the same order; empty if
    /// there are none.
    pub results: Vec<Cow<'a, [u8]>>,
    /// Whether delivered messages count as finished at once, without an ack.
    pub no_ack: bool,
    /// Names this delivery of the consumer, which is given then: if the last one
    /// had the same token and any of it still runs, it is repeated.
    pub token: Option<Cow<'a, [u8]>>,
}

impl Fetch<'_> {
    /// One message of any group, with its own lease.
    pub fn one() -> Fetch<'static> {
        Fetch {
            count: 1,
            lease: None,
            consumer: None,
            group: None,
            per_group: 1,
            max_bytes: None,
            acks: Receipts::new(),
            results: Vec::new(),
            no_ack: false,
            token: None,
        }
    }
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
    /// What to send, one message each.
    pub sends: Vec<Send<'a>>,
}

/// What a nack does to the message.
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
}

/// A pause that begins with a nack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NackPause {
    /// What is paused.
    pub of: Paused,
    /// How long from now, in ms; at least 1.
    pub ms: Millis,
}

/// What a nack pauses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paused {
    /// The group of each message that is nacked.
    Group,
    /// The queue.
    Queue,
}

/// Which dead messages become pending again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Redrive<'a> {
    /// At most this many, those that died first before others.
    Oldest(u64),
    /// The messages with these ids.
    Ids(Vec<Cow<'a, [u8]>>),
}

/// What FIND does with the messages that it has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FindAct {
    /// Dead messages become pending again.
    Redrive,
    /// The messages are cancelled.
    Cancel,
    /// The messages are removed, and their ids are free.
    Purge,
}

/// A slice of what a purge removes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Removal<'a> {
    /// These messages and records, as far as they are there: their numbers, in order.
    Messages(Vec<Seq>),
    /// What holds these groups.
    Holds(Vec<Cow<'a, [u8]>>),
    /// The memory of ids that are taken though their messages are gone.
    TakenIds,
}

/// What [`Op::PurgeSome`] removes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piecemeal<'a> {
    /// The leased messages of this group, in the order of their receipts.
    Leased(Cow<'a, [u8]>),
    /// The dead messages, which may hold their groups, in the order in which
    /// they died.
    Dead,
}

/// The settings of a group to change; `None` leaves a setting as it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GroupChanges {
    /// Messages delivered in one turn; at least 1.
    pub weight: Option<u64>,
    /// The most batches leased at once; 0 uses that of the queue.
    pub concurrency: Option<u64>,
    /// The rate limit of its deliveries; `Some(None)` removes it.
    pub rate: Option<Option<Rate>>,
}

/// A schedule to create.
#[derive(Debug, Clone, PartialEq)]
pub struct NewSchedule<'a> {
    /// Its name.
    pub name: Cow<'a, [u8]>,
    /// When it fires.
    pub rule: Recurrence,
    /// What it sends: one payload and no id, due when the schedule fires.
    pub send: Send<'a>,
    /// What becomes of fire times that were missed.
    pub missed: Missed,
    /// Whether it fires while its last message has not ended.
    pub overlap: Overlap,
}

/// An operation: everything that can change a queue.
#[derive(Debug, Clone, PartialEq)]
pub enum Op<'a> {
    /// Does nothing by itself. A log entry of it replicates the due events that
    /// were processed.
    Tick,
    /// Changes options of the queue.
    Alter(Changes),
    /// Sends messages.
    Send(Send<'a>),
    /// Counts a send that was refused because its id is taken.
    Duplicate,
    /// Acks and delivers messages. The request is borrowed where it may be
    /// tried again, as by a blocked fetch.
    Fetch(Cow<'a, Fetch<'a>>),
    /// Finishes messages.
    Ack {
        /// The receipts of the deliveries.
        receipts: Receipts,
        /// The result text to keep with the messages.
        result: Option<Cow<'a, [u8]>>,
    },
    /// Finishes a delivery and sends the messages that follow from it. It is
    /// not refused: [`crate::Queue::can_ack_send`] has to be asked before, so
    /// that the parts of several queues are done all together or not at all.
    AckSend(AckSend<'a>),
    /// Finishes messages, each with a result of its own.
    AckEach {
        /// The receipts of the deliveries.
        receipts: Receipts,
        /// The result text of each of them, in the same order.
        results: Vec<Cow<'a, [u8]>>,
    },
    /// Gives deliveries back without finishing their messages.
    Nack {
        /// The receipts of the deliveries.
        receipts: Receipts,
        /// What the nack does to the messages.
        kind: NackKind,
        /// The error text to keep with the messages.
        error: Option<Cow<'a, [u8]>>,
        /// A random number that decides the jitter of the backoffs.
        random: u64,
        /// The note to leave with the messages; an empty one removes theirs.
        note: Option<Cow<'a, [u8]>>,
        /// What is paused in the same step.
        pause: Option<NackPause>,
    },
    /// Makes leases end at another time.
    Touch {
        /// How long from now the leases end, in ms; at least 1.
        ms: Millis,
        /// The receipts of the deliveries.
        receipts: Receipts,
        /// The note to leave with the messages; an empty one removes theirs.
        note: Option<Cow<'a, [u8]>>,
    },
    /// Ends leases at once, as if their time had run out.
    EndLeases {
        /// The receipts of the deliveries.
        receipts: Receipts,
    },
    /// Ends leases some time from now, because their connection has closed. A FETCH
    /// with their token gives them their old ends back.
    Grace {
        /// How long from now the leases end, in ms; at least 1. No lease ends later
        /// than it would have.
        ms: Millis,
        /// The receipts of the deliveries.
        receipts: Receipts,
    },
    /// Moves a manual clock forward.
    Advance {
        /// The new time of the clock, in Unix ms.
        to: Millis,
    },
    /// Cancels messages.
    Cancel {
        /// The ids of the messages.
        ids: Vec<Cow<'a, [u8]>>,
    },
    /// Moves the due time of a waiting message.
    Reschedule {
        /// The id of the message.
        id: Cow<'a, [u8]>,
        /// The new due time.
        due: DueTime,
    },
    /// Replaces the payload of a waiting message.
    Update {
        /// The id of the message.
        id: Cow<'a, [u8]>,
        /// The new payload.
        payload: Cow<'a, [u8]>,
    },
    /// Makes dead messages pending again.
    Redrive(Redrive<'a>),
    /// Changes messages that a search has found.
    FindDo {
        /// What to do with them.
        act: FindAct,
        /// The numbers of the messages.
        seqs: Vec<Seq>,
    },
    /// Removes messages and the records of ended ones.
    Purge {
        /// Remove only messages in this state.
        state: Option<State>,
        /// Remove only messages of this group.
        group: Option<Cow<'a, [u8]>>,
    },
    /// Removes a part of what a purge removes.
    Remove(Removal<'a>),
    /// Removes the first of some messages. No command says so any longer, but logs of
    /// earlier versions do.
    PurgeSome {
        /// What to remove.
        of: Piecemeal<'a>,
        /// The most messages to remove, the first ones in order; at least 1.
        most: u64,
    },
    /// Stops deliveries of the queue or of a group.
    Pause {
        /// Stop only deliveries of this group.
        group: Option<Cow<'a, [u8]>>,
        /// How long to stop, in ms; `None` stops until a RESUME.
        ms: Option<Millis>,
    },
    /// Ends a pause. Resuming a group also frees it from dead messages that
    /// hold it.
    Resume {
        /// Resume only this group; `None` resumes the queue.
        group: Option<Cow<'a, [u8]>>,
    },
    /// Changes settings of a group.
    GroupSet {
        /// The name of the group.
        group: Cow<'a, [u8]>,
        /// The settings to change.
        changes: GroupChanges,
    },
    /// Creates a schedule, or replaces the one of the same name.
    Schedule(NewSchedule<'a>),
    /// Removes a schedule.
    Unschedule {
        /// The name of the schedule.
        name: Cow<'a, [u8]>,
    },
    /// Decides about the first missed fire time before `since`: it fires, or is
    /// skipped, by the MISSED of its schedule.
    CatchUp {
        /// When the server became able to fire schedules, in Unix ms.
        since: Millis,
    },
}

impl<'a> Op<'a> {
    /// The operation that acks and delivers as `fetch` says.
    pub fn fetch(fetch: Fetch<'a>) -> Op<'a> {
        Op::Fetch(Cow::Owned(fetch))
    }
}
