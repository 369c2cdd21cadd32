//! The queue. `state.rs` holds what every server has alike, `indexes.rs` what follows from that,
//! and `notes.rs` what only this server knows.
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
mod event;
mod held;
mod indexes;
pub mod inspect;
mod limits;
mod lookup;
#[cfg(any(test, feature = "model"))]
#[allow(missing_docs)]
pub mod model;
mod moves;
mod notes;
mod ops;
mod packing;
mod reach;
pub mod rebuild;
mod seldom;
#[cfg(any(test, feature = "validate"))]
mod shape;
mod state;
mod stuck;
#[cfg(test)]
mod tests;
mod time;

pub use time::lead::MAX_LEAD;
pub use time::Progress;

use crate::collections::rare::Rare;
use crate::error::Error;
use crate::index::ready_line::Join;
use crate::message::body::Content;
use crate::message::id::{generated, Id, Ids, GENERATED_LEN};
use crate::message::state::StoredState;
use crate::message::store::Store;
use crate::message::Message;
use crate::op::{Done, Effects, Moment, Op, Ticked};
use crate::seeded::settles_late;
use crate::settings::{Clock, Fair, Settings};
use crate::{Millis, Receipt, Seq, NEVER};
use indexes::Indexes;
use notes::Notes;
use seldom::Seldom;
use state::State;

/// A delay queue.
///
/// All times passed to a queue must come from one clock. A time earlier than the
/// last one seen is treated as the last one seen. Events that are due are processed
/// by [`Queue::advance`]; each operation sees the queue as that left it.
#[derive(Debug, Clone)]
pub struct Queue {
    state: State,
    indexes: Indexes,
    notes: Notes,
}

impl Queue {
    /// Makes an empty queue. `salt` is random; it makes generated ids unique across
    /// queues.
    pub fn new(settings: Settings, clock: Clock, salt: u64) -> Queue {
        let fair = settings.fair;
        let seldom = Rare::unless(
            fair == Fair::Count,
            Seldom {
                fair: Some(Box::default()),
                ..Seldom::default()
            },
        );
        let mut store = Rare::default();
        if settings.compress {
            Store::set_packing(&mut store, true);
        }
        Queue {
            state: State {
                settings: settings.shared(),
                clock,
                last: match clock {
                    Clock::Manual(start) => start,
                    Clock::Server => 0,
                },
                next_seq: 1,
                last_receipt: 0,
                ticket: 0,
                ids: Ids::new(salt),
                store,
                leases: Rare::default(),
                records: Rare::default(),
                consumers: Rare::default(),
                totals: Rare::default(),
                lateness: Rare::default(),
                paused_until: None,
                groups: Rare::default(),
                seldom,
                plain_position: None,
            },
            indexes: Indexes {
                wake: NEVER,
                ..Indexes::default()
            },
            notes: Notes::default(),
        }
    }

    /// Records that the queue was created at this moment. Creation itself is a
    /// change that is replicated.
    pub fn made_at(&mut self, moment: Moment) {
        self.state.last = self.now(moment);
        self.notes.effects.changed = true;
        self.notes.effects.visible = true;
    }

    /// The time of this queue (Unix ms) at a moment of the server. A MANUAL queue
    /// ignores `moment`; a SERVER queue never goes back.
    pub fn now(&self, moment: Moment) -> Millis {
        match self.state.clock {
            Clock::Manual(now) => now,
            Clock::Server => moment.ms().max(self.state.last),
        }
    }

    /// The latest time (Unix ms) at which this queue has acted.
    pub fn last_seen(&self) -> Millis {
        self.state.last
    }

    /// The moment of the last change of the queue.
    pub fn last_moment(&self) -> Moment {
        Moment {
            us: self.state.last.saturating_mul(1000),
            receipt: self.state.last_receipt + 1,
        }
    }

    /// Whether the queue has already acted at its time for this moment of the
    /// server.
    pub fn is_at_last(&self, moment: Moment) -> bool {
        self.now(moment) == self.state.last
    }

    /// Whether the queue follows the server's clock or a MANUAL one.
    pub fn clock(&self) -> Clock {
        self.state.clock
    }

    /// Options of the queue.
    pub fn settings(&self) -> &Settings {
        &self.state.settings
    }

    /// The last receipt given out; 0 before the first delivery.
    pub fn last_receipt(&self) -> Receipt {
        self.state.last_receipt
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
        let (last, ticket) = (self.state.last, self.state.ticket);
        let changed = std::mem::take(&mut self.notes.effects.changed);
        let done = self.perform(op, moment);
        if !self.notes.effects.changed {
            // An operation without effect is not replicated, so it must not move
            // the clock or the ticket here either.
            self.state.last = last;
            self.state.ticket = ticket;
        }
        self.notes.effects.changed |= changed;
        done
    }

    /// Takes the effects collected since the last call.
    #[inline]
    pub fn take_effects(&mut self) -> Effects {
        std::mem::take(&mut self.notes.effects)
    }

    /// Whether anything has changed since [`Queue::take_effects`].
    pub fn has_changed(&self) -> bool {
        self.notes.effects.changed
    }

    /// The message with this number, if it is stored.
    pub fn message(&self, seq: Seq) -> Option<&Message> {
        self.state.store.get(seq)
    }

    /// The id (if given) and payload of a message of this queue.
    pub fn content(&self, message: &Message) -> Content<'_> {
        self.state.store.content(message)
    }

    /// The id of a message of this queue.
    pub fn id_of(&self, seq: Seq, message: &Message) -> Id<'_> {
        self.id_with(seq, message, self.state.store.content(message))
    }

    /// The id of a message with this content. The message may already be out of the
    /// store.
    pub fn id_with<'a>(&self, seq: Seq, message: &Message, content: Content<'a>) -> Id<'a> {
        self.state.ids.of(seq, message, content)
    }

    /// The generated id of a message that the last operation sent without an id.
    pub fn new_id(&self, seq: Seq) -> [u8; GENERATED_LEN] {
        generated(seq, self.state.last, self.state.ids.salt())
    }

    /// The number of the message with this id, unless it was purged or is on its way to another
    /// queue.
    pub fn find(&self, id: &[u8]) -> Option<Seq> {
        let seq = self.state.ids.find(&self.state.store, id)?;
        match self.state.seldom.has_unsettled() && self.is_at(seq, StoredState::Leaving) {
            true => None,
            false => Some(seq),
        }
    }

    /// Makes sure that [`Queue::take_effects`] reports the end of the message with
    /// this id. If the message is replaced, the watch passes to its replacement.
    pub fn watch(&mut self, id: &[u8]) {
        self.notes.watched.insert(id.into());
    }

    /// Whether any message has expired by `now` and was not moved to dead yet.
    /// O(1).
    pub fn has_overdue_expiry(&self, now: Millis) -> bool {
        self.indexes
            .expiring
            .first()
            .is_some_and(|((at, _), ())| at <= now)
    }

    /// Whether a receipt belongs to a delivery that is still leased.
    pub fn is_running(&self, receipt: Receipt) -> bool {
        self.state.leases.find(receipt).is_some()
    }

    /// Makes sure that `wake` is no later than `at`.
    fn wake_by(&mut self, at: Millis) {
        self.indexes.wake = self.indexes.wake.min(at);
    }

    /// The way in which the present command adds an entry to the ready line: by its time
    /// and ticket.
    fn join(&self, now: Millis) -> Join {
        Join {
            time: now,
            ticket: self.state.ticket,
        }
    }
}
