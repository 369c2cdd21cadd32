//! The queue: its content, and the state that its parts share.
//!
//! `ops/` has one file for each thing that a client can ask for. `time/` does what is due by
//! itself: due times, lease ends, expiries, schedules; it also knows clocks that are ahead of the
//! server's. `moves.rs` moves a message between stored states and keeps every index in step,
//! `ends/` ends one, with all that follows from it, and `lookup.rs` finds one. `delivery/` tells
//! what the queue can give and in which order, and brings running messages back. `limits/` keeps
//! groups from giving after failures. `batches/` counts the messages of named batches,
//! `detached.rs` cuts ties to other keys, `stuck.rs` ends loops that make no progress, and `held/`
//! has the messages that wait for a batch, for children or for a signal. `bulk/` divides an
//! operation on many messages into slices. `inspect/` only reads. `rebuild/` takes a queue apart
//! for a snapshot and builds it from one, checked.

mod batches;
pub mod bulk;
mod copy;
mod delivery;
mod detached;
pub mod ends;
mod held;
pub mod inspect;
mod limits;
mod lookup;
#[cfg(any(test, feature = "model"))]
#[allow(missing_docs)]
pub mod model;
mod moves;
mod ops;
mod reach;
pub mod rebuild;
#[cfg(any(test, feature = "validate"))]
mod shape;
mod stuck;
#[cfg(test)]
mod tests;
mod time;

pub use time::lead::MAX_LEAD;
pub use time::Progress;

use std::collections::BTreeMap;

use hashbrown::HashSet;

use crate::collections::rate_window::RateWindow;
use crate::consumer::Consumers;
use crate::dead_letters::DeadLetters;
use crate::detached::Detached;
use crate::error::Error;
use crate::groups::breaker::Circuit;
use crate::groups::Groups;
use crate::index::batches::Batches;
use crate::index::fair_line::FairLine;
use crate::index::first_dues::FirstDues;
use crate::index::held::Held;
use crate::index::leases::Leases;
use crate::index::ready_line::{Expected, Join, Position, ReadyLine};
use crate::index::records::Records;
use crate::index::siblings::AllSiblings;
use crate::index::waiting::Waiting;
use crate::message::body::Content;
use crate::message::id::{generated, Id, Ids, NameHasher, GENERATED_LEN};
use crate::message::state::StoredState;
use crate::message::store::Store;
use crate::message::Message;
use crate::named_limits::NamedLimits;
use crate::op::{Deliveries, Done, Effects, Moment, Op, Ticked};
use crate::schedule::Schedules;
use crate::seeded::settles_late;
use crate::settings::{Clock, Fair, Settings};
use crate::stats::{Lateness, Totals};
use crate::{Millis, Receipt, Seq, TimeIndex, NEVER};
use bulk::removal::garbage::Garbage;
use ends::Unsettled;
use inspect::pages::AllPages;
use time::lead::Lead;

/// A delay queue.
///
/// All times passed to a queue must come from one clock. A time earlier than the
/// last one seen is treated as the last one seen. Events that are due are processed
/// by [`Queue::advance`]; each operation sees the queue as that left it.
#[derive(Debug, Clone)]
pub struct Queue {
    // State: replicated, and the same on every server that has the queue.
    settings: Settings,
    clock: Clock,
    /// The latest time at which the queue has acted, in Unix ms. It never acts at
    /// an earlier one.
    last: Millis,
    next_seq: Seq,
    last_receipt: Receipt,
    /// Counts the commands that may add an entry to the ready line. It orders entries
    /// that joined within the same millisecond.
    ticket: u64,
    ids: Ids,
    store: Store,
    leases: Leases,
    records: Records,
    consumers: Consumers,
    /// Ends that leases had before their connection closed and GRACE shortened them,
    /// by receipt. Some of the leases may have ended.
    old_ends: BTreeMap<Receipt, Millis>,
    schedules: Schedules,
    totals: Totals,
    lateness: Lateness,
    /// The deliveries that the RATE of the queue still counts.
    window: RateWindow,
    paused_until: Option<Millis>,
    groups: Groups,
    /// The breaker of the ungrouped messages, unless it is closed and remembers no
    /// failure.
    plain_breaker: Option<Box<Circuit>>,
    /// Named batches, and the messages that they hold. `None` where there are none.
    batches: Option<Box<Batches>>,
    /// The children of messages of this or another queue. `None` where there are none.
    siblings: Option<Box<AllSiblings>>,
    /// The outcome of dead messages that were to go to another queue. `None` if there were
    /// none.
    dead_letters: Option<Box<DeadLetters>>,
    /// The ties to other keys that the queue has lost on its way here. `None` if there are none.
    detached: Option<Box<Detached>>,
    /// The consequences of ends of messages that are not settled yet. `None` where that is nothing,
    /// and so whenever a command has ended.
    unsettled: Option<Box<Unsettled>>,
    /// Limits with names. `None` if no message and no DQ.LIMIT has named one.
    limits: Option<Box<NamedLimits>>,
    /// The usage of groups, and their order by that. `None` with FAIR COUNT.
    fair: Option<Box<FairLine>>,

    // Indexes: they follow from the state, and are built anew when a queue is loaded.
    waiting: Waiting,
    /// Held messages.
    held: Held,
    /// The first due times of pending messages that have come back.
    first_dues: FirstDues,
    /// Pending messages that have a TTL, by the time at which it ends.
    expiring: TimeIndex,
    /// Ready line: the groups that can give a message now, in the order in which
    /// they will.
    ready_line: ReadyLine,
    /// Groups that will be able to deliver from a certain time on, by that time.
    expected: Expected,
    /// Position of the ungrouped messages in the ready line, if any of them is due.
    plain_position: Option<Position>,
    /// Number of due messages in groups that can give.
    grouped_ready: u64,
    /// Number of leased messages that belong to a group.
    grouped_running: u64,
    /// Payload bytes of all pending and running messages.
    bytes: u64,
    /// Payload bytes of the running messages.
    running_bytes: u64,
    /// Whether a message may have its own RETAIN.
    has_own_retain: bool,
    /// Whether anything may wait for the end of the run of a message.
    has_reruns: bool,
    /// No event is due before this time (Unix ms). It may be too early, never too
    /// late.
    wake: Millis,

    // Notes of this server: neither replicated nor saved.
    /// Whether the schedules that the present operation passes are left out.
    skips_fires: bool,
    effects: Effects,
    /// The walks of clients that list messages page by page.
    pages: AllPages,
    /// Ids whose end some client waits for.
    watched: HashSet<Box<[u8]>, NameHasher>,
    /// The clock of the queue while it is ahead of the server's.
    ahead: Option<Lead>,
    /// Empty list with the capacity of the last deliveries, kept so that the next
    /// FETCH need not allocate.
    given: Deliveries,
    /// The parts that no longer belong to the queue and are still to be freed.
    garbage: Garbage,
}

impl Queue {
    /// Makes an empty queue. `salt` is random; it makes generated ids unique across
    /// queues.
    pub fn new(settings: Settings, clock: Clock, salt: u64) -> Queue {
        let fair = settings.fair;
        Queue {
            settings,
            clock,
            last: match clock {
                Clock::Manual(start) => start,
                Clock::Server => 0,
            },
            next_seq: 1,
            last_receipt: 0,
            ticket: 0,
            ids: Ids::new(salt),
            store: Store::default(),
            waiting: Waiting::default(),
            held: Held::default(),
            first_dues: FirstDues::default(),
            groups: Groups::default(),
            plain_breaker: None,
            ready_line: ReadyLine::default(),
            expected: Expected::default(),
            plain_position: None,
            grouped_ready: 0,
            grouped_running: 0,
            leases: Leases::default(),
            expiring: TimeIndex::new(),
            records: Records::default(),
            consumers: Consumers::default(),
            old_ends: BTreeMap::new(),
            schedules: Schedules::default(),
            totals: Totals::default(),
            lateness: Lateness::default(),
            window: RateWindow::default(),
            paused_until: None,
            bytes: 0,
            running_bytes: 0,
            has_own_retain: false,
            has_reruns: false,
            unsettled: None,
            wake: NEVER,
            skips_fires: false,
            effects: Effects::default(),
            pages: AllPages::default(),
            watched: HashSet::default(),
            ahead: None,
            batches: None,
            siblings: None,
            dead_letters: None,
            detached: None,
            limits: None,
            fair: (fair != Fair::Count).then(Box::default),
            given: Deliveries::new(),
            garbage: Garbage::default(),
        }
    }

    /// Records that the queue was created at this moment. Creation itself is a
    /// change that is replicated.
    pub fn made_at(&mut self, moment: Moment) {
        self.last = self.now(moment);
        self.effects.changed = true;
        self.effects.visible = true;
    }

    /// The time of this queue (Unix ms) at a moment of the server. A MANUAL queue
    /// ignores `moment`; a SERVER queue never goes back.
    pub fn now(&self, moment: Moment) -> Millis {
        match self.clock {
            Clock::Manual(now) => now,
            Clock::Server => moment.ms().max(self.last),
        }
    }

    /// The latest time (Unix ms) at which this queue has acted.
    pub fn last_seen(&self) -> Millis {
        self.last
    }

    /// The moment of the last change of the queue.
    pub fn last_moment(&self) -> Moment {
        Moment {
            us: self.last.saturating_mul(1000),
            receipt: self.last_receipt + 1,
        }
    }

    /// Whether the queue has already acted at its time for this moment of the
    /// server.
    pub fn is_at_last(&self, moment: Moment) -> bool {
        self.now(moment) == self.last
    }

    /// Whether the queue follows the server's clock or a MANUAL one.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Options of the queue.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The last receipt given out; 0 before the first delivery.
    pub fn last_receipt(&self) -> Receipt {
        self.last_receipt
    }

    /// Applies one operation. It sees the queue as the last [`Queue::advance`] left
    /// it, so call that first.
    ///
    /// Errors: the operation is refused, and nothing has changed. So is every operation while the
    /// queue owes anything to other keys, but for [`Op::Moved`], which settles a part of it, and
    /// [`Op::Tick`], which does nothing then.
    #[inline]
    pub fn apply(&mut self, op: &Op, moment: Moment) -> Result<Done, Error> {
        if self.owes() && !matches!(op, Op::Moved(_) | Op::Tick) && !settles_late() {
            debug_assert!(false, "{op:?} would see what is not settled");
            return Err(Error::Unsettled);
        }
        self.apply_logged(op, moment)
    }

    /// Like [`Queue::apply`], for an operation of a log entry, whose order was decided where it was
    /// written.
    pub(crate) fn apply_logged(&mut self, op: &Op, moment: Moment) -> Result<Done, Error> {
        if self.owes() && matches!(op, Op::Tick) {
            return Ok(Done::Ticked(Ticked::default()));
        }
        let (last, ticket) = (self.last, self.ticket);
        let changed = std::mem::take(&mut self.effects.changed);
        let done = self.perform(op, moment);
        if !self.effects.changed {
            // An operation without effect is not replicated, so it must not move
            // the clock or the ticket here either.
            self.last = last;
            self.ticket = ticket;
        }
        self.effects.changed |= changed;
        done
    }

    /// Takes the effects collected since the last call.
    #[inline]
    pub fn take_effects(&mut self) -> Effects {
        std::mem::take(&mut self.effects)
    }

    /// The message with this number, if it is stored.
    pub fn message(&self, seq: Seq) -> Option<&Message> {
        self.store.get(seq)
    }

    /// The id (if given) and payload of a message of this queue.
    pub fn content(&self, message: &Message) -> Content<'_> {
        self.store.content(message)
    }

    /// The id of a message of this queue.
    pub fn id_of(&self, seq: Seq, message: &Message) -> Id<'_> {
        self.id_with(seq, message, self.store.content(message))
    }

    /// The id of a message with this content. The message may already be out of the
    /// store.
    pub fn id_with<'a>(&self, seq: Seq, message: &Message, content: Content<'a>) -> Id<'a> {
        self.ids.of(seq, message, content)
    }

    /// The generated id of a message that the last operation sent without an id.
    pub fn new_id(&self, seq: Seq) -> [u8; GENERATED_LEN] {
        generated(seq, self.last, self.ids.salt())
    }

    /// The number of the message with this id, unless it was purged or is on its way to another
    /// queue.
    pub fn find(&self, id: &[u8]) -> Option<Seq> {
        let seq = self.ids.find(&self.store, id)?;
        match self.unsettled.is_some() && self.is_at(seq, StoredState::Leaving) {
            true => None,
            false => Some(seq),
        }
    }

    /// Makes sure that [`Queue::take_effects`] reports the end of the message with
    /// this id. If the message is replaced, the watch passes to its replacement.
    pub fn watch(&mut self, id: &[u8]) {
        self.watched.insert(id.into());
    }

    /// Whether any message has expired by `now` and was not moved to dead yet.
    /// O(1).
    pub fn has_overdue_expiry(&self, now: Millis) -> bool {
        self.expiring.first().is_some_and(|((at, _), ())| at <= now)
    }

    /// Whether a receipt belongs to a delivery that is still leased.
    pub fn is_running(&self, receipt: Receipt) -> bool {
        self.leases.find(receipt).is_some()
    }

    /// Makes sure that `wake` is no later than `at`.
    fn wake_by(&mut self, at: Millis) {
        self.wake = self.wake.min(at);
    }

    /// The way in which the present command adds an entry to the ready line: by its time
    /// and ticket.
    fn join(&self, now: Millis) -> Join {
        Join {
            time: now,
            ticket: self.ticket,
        }
    }
}
