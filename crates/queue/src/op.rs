//! What can be done to a queue, and what came of it, as data.
//!
//! A command, a served waiter, a slice of timer work and the replay of any of
//! them are all one [`Op`] at one [`Moment`].

mod effects;
mod outcome;

use std::borrow::Cow;

use smallvec::SmallVec;

use super::message::Choices;
use super::recurrence::Recurrence;
use super::schedule::{Missed, Overlap};
use super::settings::{Changes, Rate};
use super::state::State;
use super::{Millis, Receipt};

pub use effects::{Effects, Ending, Happened};
pub use outcome::{Delivered, Deliveries, Done, Gone, Sent, Ticked};

/// When an operation happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The queue clock of the server, in microseconds of Unix time.
    pub us: u64,
    /// No receipt below this is given out: above all that this server has
    /// given out or seen, over all queues.
    pub receipt: Receipt,
}

impl Moment {
    /// The moment of this queue clock, in microseconds.
    #[cfg(test)]
    pub fn at_us(us: u64) -> Moment {
        Moment { us, receipt: us }
    }

    /// The moment of this queue clock, in milliseconds.
    #[cfg(test)]
    pub fn at_ms(ms: Millis) -> Moment {
        Moment::at_us(ms.saturating_mul(1000))
    }

    /// The queue clock in milliseconds.
    pub fn ms(self) -> Millis {
        self.us / 1000
    }
}

/// Receipts, as a command names them.
pub type Receipts = SmallVec<[Receipt; 4]>;

/// When a message is to be due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DueTime {
    /// At once.
    #[default]
    Now,
    /// So long from now.
    After(Millis),
    /// At this time; one in the past is now.
    At(Millis),
}

impl DueTime {
    /// The time itself.
    pub fn from(self, now: Millis) -> Millis {
        match self {
            DueTime::Now => now,
            DueTime::After(delay) => now.saturating_add(delay).min(super::MAX_EXACT),
            DueTime::At(at) => at.max(now),
        }
    }
}

/// Messages to be sent: all or none of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Send<'a> {
    /// The payload of each.
    pub payloads: SmallVec<[&'a [u8]; 1]>,
    /// The id, where one is given; then there is one payload.
    pub id: Option<Cow<'a, [u8]>>,
    /// Whether a waiting message of that id is replaced.
    pub replace: bool,
    /// When they are due.
    pub due: DueTime,
    /// Their group.
    pub group: Option<Cow<'a, [u8]>>,
    /// Lower goes first.
    pub priority: i8,
    /// All else that was said of them.
    pub choices: Choices,
    /// A random number that the ids which the queue makes have as their salt from
    /// here on, where it may have made ids elsewhere; then no id is given.
    pub new_salt: Option<u64>,
}

impl<'a> Send<'a> {
    /// One plain message, due now.
    pub fn plain(payload: &'a [u8]) -> Send<'a> {
        Send {
            payloads: SmallVec::from_slice(&[payload]),
            id: None,
            replace: false,
            due: DueTime::Now,
            group: None,
            priority: 0,
            choices: Choices::default(),
            new_salt: None,
        }
    }
}

/// Messages wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetch<'a> {
    /// At most so many; at least 1.
    pub count: u64,
    /// Lease time of these deliveries, if not the messages' own.
    pub lease: Option<Millis>,
    /// Who fetches.
    pub consumer: Option<Cow<'a, [u8]>>,
    /// Only of this group.
    pub group: Option<Cow<'a, [u8]>>,
    /// So many in a row of each group; at least 1.
    pub per_group: u64,
    /// The batch ends before it passes so many payload bytes.
    pub max_bytes: Option<u64>,
    /// Deliveries to be acked first.
    pub acks: Receipts,
    /// Whether what is delivered counts as finished at once.
    pub no_ack: bool,
}

impl Fetch<'_> {
    /// One message, of any group, leased for its own time.
    pub fn one() -> Fetch<'static> {
        Fetch {
            count: 1,
            lease: None,
            consumer: None,
            group: None,
            per_group: 1,
            max_bytes: None,
            acks: Receipts::new(),
            no_ack: false,
        }
    }
}

/// How a delivery is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NackKind {
    /// It failed; it waits for its backoff.
    Backoff,
    /// It failed; it waits so long.
    Delay(Millis),
    /// It does not count.
    Silent,
    /// It is not to be tried again.
    Fatal,
}

/// Which dead messages are to be pending again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Redrive<'a> {
    /// So many, oldest death first.
    Oldest(u64),
    /// Those with these ids.
    Ids(Vec<Cow<'a, [u8]>>),
}

/// What a purge takes one by one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piecemeal<'a> {
    /// What is leased of this group, by receipt.
    Leased(Cow<'a, [u8]>),
    /// Dead messages, which may hold their groups, by death.
    Dead,
}

/// What GROUPSET says of a group; `None` leaves a thing as it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GroupChanges {
    /// Messages given in one turn; at least 1.
    pub weight: Option<u64>,
    /// Batches leased at once; 0: the queue's own number.
    pub concurrency: Option<u64>,
    /// Limit of its deliveries; `Some(None)`: none of its own.
    pub rate: Option<Option<Rate>>,
}

/// A schedule to be made.
#[derive(Debug, Clone, PartialEq)]
pub struct NewSchedule<'a> {
    /// Its name.
    pub name: Cow<'a, [u8]>,
    /// When it fires.
    pub rule: Recurrence,
    /// What it sends: one payload, no id, due when it fires.
    pub send: Send<'a>,
    /// What becomes of missed times.
    pub missed: Missed,
    /// Whether it waits for its last message.
    pub overlap: Overlap,
}

/// Everything that changes a queue.
#[derive(Debug, Clone, PartialEq)]
pub enum Op<'a> {
    /// Nothing but what time has done.
    Tick,
    /// Changes options.
    Alter(Changes),
    /// Sends messages.
    Send(Send<'a>),
    /// Counts sends that met a taken id.
    Duplicate,
    /// Acks and delivers. Whoever may come again with the same wish lends it.
    Fetch(Cow<'a, Fetch<'a>>),
    /// Ends deliveries well.
    Ack {
        /// Which ones.
        receipts: Receipts,
        /// What came of it.
        result: Option<Cow<'a, [u8]>>,
    },
    /// Gives deliveries back.
    Nack {
        /// Which ones.
        receipts: Receipts,
        /// How.
        kind: NackKind,
        /// What went wrong.
        error: Option<Cow<'a, [u8]>>,
        /// Decides the spread of the backoffs.
        random: u64,
    },
    /// Moves the ends of leases.
    Touch {
        /// How far from now they end; at least 1 ms.
        ms: Millis,
        /// Whose.
        receipts: Receipts,
    },
    /// Ends leases at once, as if they had run out.
    EndLeases {
        /// Whose.
        receipts: Receipts,
    },
    /// Moves a manual clock.
    Advance {
        /// To where.
        to: Millis,
    },
    /// Cancels messages.
    Cancel {
        /// Which ones.
        ids: Vec<Cow<'a, [u8]>>,
    },
    /// Moves the due time of a waiting message.
    Reschedule {
        /// Which one.
        id: Cow<'a, [u8]>,
        /// To when.
        due: DueTime,
    },
    /// Replaces the payload of a waiting message.
    Update {
        /// Which one.
        id: Cow<'a, [u8]>,
        /// By this.
        payload: Cow<'a, [u8]>,
    },
    /// Makes dead messages pending.
    Redrive(Redrive<'a>),
    /// Removes messages and records.
    Purge {
        /// Only those in this state.
        state: Option<State>,
        /// Only those of this group.
        group: Option<Cow<'a, [u8]>>,
    },
    /// Removes some of what a purge takes one by one; the purge itself follows.
    PurgeSome {
        /// Of what.
        of: Piecemeal<'a>,
        /// At most so many, the first; at least 1.
        most: u64,
    },
    /// Stops deliveries.
    Pause {
        /// Only of this group.
        group: Option<Cow<'a, [u8]>>,
        /// For so long; without end if not given.
        ms: Option<Millis>,
    },
    /// Lets deliveries go on.
    Resume {
        /// Of this group.
        group: Option<Cow<'a, [u8]>>,
    },
    /// Settings of a group.
    GroupSet {
        /// Which one.
        group: Cow<'a, [u8]>,
        /// What changes.
        changes: GroupChanges,
    },
    /// Makes a schedule.
    Schedule(NewSchedule<'a>),
    /// Removes a schedule.
    Unschedule {
        /// Which one.
        name: Cow<'a, [u8]>,
    },
    /// Decides about the first of the fire times before `since` that have not
    /// fired.
    CatchUp {
        /// When the server became able to fire.
        since: Millis,
    },
}

impl<'a> Op<'a> {
    /// Acks and delivers what is wanted.
    pub fn fetch(fetch: Fetch<'a>) -> Op<'a> {
        Op::Fetch(Cow::Owned(fetch))
    }
}
