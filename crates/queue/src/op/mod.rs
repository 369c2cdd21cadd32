//! The operations on a queue and their outcomes, as data.
//!
//! A client's command, a fetch that was blocked and is served, a slice of
//! background work and the replay of any of them are each one [`Op`], applied
//! at one [`Moment`]. So they all take the same way through the queue.

mod before;
mod counted;
mod effects;
mod fetch;
mod nack;
mod outcome;
mod send;
mod times;
mod verb;

use std::borrow::Cow;

use smallvec::SmallVec;

use crate::dead_letters::Moved;
use crate::detached::Ties;
use crate::message::state::State;
use crate::named_limits::LimitRule;
use crate::settings::{Changes, Rate};
use crate::{Millis, Receipt, Seq};

pub use crate::message::due_time::DueTime;
pub use before::Before;
pub use counted::{Counted, CountedOne};
pub use effects::{Effects, Ending, Happened, Told};
pub use fetch::Fetch;
pub use nack::{NackKind, NackPause, Paused};
pub use outcome::{Delivered, Deliveries, Done, Gone, Sent, Ticked};
pub use send::{AckSend, DedupId, NewSchedule, Send, Signal};
pub use times::{check_time, check_times};

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
    #[cfg(any(test, feature = "model"))]
    pub fn at_us(us: u64) -> Moment {
        Moment { us, receipt: us }
    }

    /// The moment at which the queue clock shows `ms` milliseconds.
    #[cfg(any(test, feature = "model"))]
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

/// The dead messages that become pending again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Redrive<'a> {
    /// At most this many messages, in the order of their deaths.
    Oldest(u64),
    /// The messages with these ids.
    Ids(Vec<Cow<'a, [u8]>>),
}

/// The action of FIND on the messages that it has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FindAct {
    /// Dead messages become pending again.
    Redrive,
    /// The messages are cancelled.
    Cancel,
    /// The messages are removed, and their ids are free.
    Purge,
}

/// A slice of a purge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Removal<'a> {
    /// These messages and records, as far as they exist: their numbers, in order.
    Messages(Vec<Seq>),
    /// The dead messages that hold these groups.
    Holds(Vec<Cow<'a, [u8]>>),
    /// The memory of ids that are taken though their messages are gone.
    TakenIds,
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

/// An operation that can change a queue.
#[derive(Debug, Clone, PartialEq)]
pub enum Op<'a> {
    /// Only processes due events. A log entry of it replicates the due events that were
    /// processed.
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
    /// Finishes messages, and corrects the cost of each to the real one.
    AckCost {
        /// The receipts of the deliveries.
        receipts: Receipts,
        /// The real cost of each message.
        cost: u64,
        /// The result text to keep with the messages.
        result: Option<Cow<'a, [u8]>>,
    },
    /// Finishes a delivery and sends the messages that follow from it. It is
    /// not refused: [`crate::Queue::can_ack_send`] has to be asked before, so
    /// that the parts of several queues are done all together or not at all.
    AckSend(AckSend<'a>),
    /// Finishes messages, each with its own result.
    AckEach {
        /// The receipts of the deliveries.
        receipts: Receipts,
        /// The result text of each message, in the same order.
        results: Vec<Cow<'a, [u8]>>,
    },
    /// Gives deliveries back without finishing their messages.
    Nack {
        /// The receipts of the deliveries.
        receipts: Receipts,
        /// The effect of the nack on the messages.
        kind: NackKind,
        /// The error text to keep with the messages.
        error: Option<Cow<'a, [u8]>>,
        /// A random number that decides the jitter of the backoffs.
        random: u64,
        /// The note to leave with the messages; an empty one removes theirs.
        note: Option<Cow<'a, [u8]>>,
        /// The pause that begins in the same step.
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
    /// Ends leases at once, because their connection has closed. Their messages wait for
    /// their backoff.
    EndLeases {
        /// The receipts of the deliveries.
        receipts: Receipts,
    },
    /// Ends leases some time from now, because their connection has closed. Their messages
    /// wait for their backoff then. A FETCH with their token gives them their old ends back.
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
        /// Whether the schedules on the way are left out, because the server has no
        /// memory for their messages.
        skip_fires: bool,
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
    /// Sends a signal to a message that has not ended. It releases one that is parked.
    Signal {
        /// The id of the message.
        id: Cow<'a, [u8]>,
        /// The text of the signal.
        text: Cow<'a, [u8]>,
    },
    /// Makes dead messages pending again.
    Redrive(Redrive<'a>),
    /// Changes messages that a search has found.
    FindDo {
        /// The action on them.
        act: FindAct,
        /// The numbers of the messages.
        seqs: Vec<Seq>,
    },
    /// Removes messages and records.
    Purge {
        /// Remove only messages in this state.
        state: Option<State>,
        /// Remove only messages of this group.
        group: Option<Cow<'a, [u8]>>,
    },
    /// Removes a part of the messages of a purge.
    Remove(Removal<'a>),
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
    /// Gives a limit with a name its rule.
    Limit {
        /// The name, or a pattern.
        name: Cow<'a, [u8]>,
        /// The rule; a rule without restrictions removes that of the name.
        rule: LimitRule,
    },
    /// Creates a schedule, or replaces the one of the same name.
    Schedule(NewSchedule<'a>),
    /// Removes a schedule.
    Unschedule {
        /// The name of the schedule.
        name: Cow<'a, [u8]>,
    },
    /// Pauses a schedule or resumes it.
    PauseSchedule {
        /// The name of the schedule.
        name: Cow<'a, [u8]>,
        /// Whether it is paused.
        paused: bool,
    },
    /// Decides about the first missed fire time before `since`: it fires, or is
    /// skipped, by the MISSED of its schedule.
    CatchUp {
        /// When the server became able to fire schedules, in Unix ms.
        since: Millis,
        /// Whether all fire times up to now are skipped instead, because the server has
        /// no memory for their messages.
        skip: bool,
    },
    /// Removes dead messages that have gone to another queue. It follows the operation in
    /// which they died, in the same replicated command.
    Moved(Moved<'a>),
    /// Counts the changes among children at their parents. It follows the operation in
    /// which that happened, in the same replicated command.
    Children(Counted<'a>),
    /// Cuts ties to other keys. It follows the RESTORE or COPY with which the queue came, and
    /// no event is processed before it.
    Detach(Ties),
    /// Keeps what a FETCH with a token has applied. It follows the acknowledgement of that FETCH,
    /// in the same replicated command.
    Applied(Applied<'a>),
}

/// The effects that a FETCH with a token has applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied<'a> {
    /// The consumer.
    pub consumer: Cow<'a, [u8]>,
    /// The token.
    pub token: Cow<'a, [u8]>,
    /// The replies of the effects, as [`effect`](crate::codec::effect) writes it.
    pub outcomes: Cow<'a, [u8]>,
}

impl<'a> Op<'a> {
    /// The operation that acks with a result for each receipt, or without results. The log has no
    /// other form for a list without results.
    pub fn acks(receipts: Receipts, results: Vec<Cow<'a, [u8]>>) -> Op<'a> {
        match results.is_empty() {
            true => Op::Ack {
                receipts,
                result: None,
            },
            false => Op::AckEach { receipts, results },
        }
    }

    /// The operation that acks and delivers by `fetch`.
    pub fn fetch(fetch: Fetch<'a>) -> Op<'a> {
        Op::Fetch(Cow::Owned(fetch))
    }
}
