//! The queue: what is in it and what its parts have in common.
//!
//! `send.rs`, `fetch.rs`, `settle.rs` and `change.rs` do what commands ask;
//! `time.rs` does what time brings, `promote.rs` most of it; `place.rs` moves
//! a message from one place to another and keeps every index in step,
//! `standing.rs` does so with the line, `ending.rs` ends it; `readiness.rs`,
//! `look.rs`, `list.rs`, `peek.rs` and `explain.rs` only read.

pub mod approach;
mod change;
mod counts;
mod cut;
mod discard;
mod ending;
pub mod explain;
mod fetch;
mod holds;
pub mod list;
pub mod look;
pub mod parts;
mod peek;
mod place;
mod promote;
mod purge;
mod readiness;
mod redrive;
mod remains;
mod schedules;
mod send;
mod settle;
mod standing;
mod sweep;
#[cfg(test)]
mod tests;
mod time;

use hashbrown::HashSet;

use super::backlog::Pending;
use super::body::Content;
use super::consumer::Consumers;
use super::error::Error;
use super::group::Group;
use super::groups::Groups;
use super::id::{generated, Id, Ids, NameHasher, GENERATED_LEN};
use super::lease::Leases;
use super::line::{Expected, Join, LineKey};
use super::message::Message;
use super::op::{Deliveries, Done, Effects, Moment, Op, Ticked};
use super::ordered::OrderedSet;
use super::rate::RateWindow;
use super::records::Records;
use super::schedule::Schedules;
use super::settings::{Clock, Settings};
use super::stats::{Lateness, Totals};
use super::store::Store;
use super::waiting::Waiting;
use super::{Millis, Receipt, Seq, TimeIndex, NEVER};
use redrive::Redriving;
use remains::Remains;

/// A delay queue.
///
/// All times given to it are those of one clock that never goes back. What
/// time brings is done by [`Queue::advance`]; each operation sees the queue
/// as it is after that.
#[derive(Debug, Clone)]
pub struct Queue {
    settings: Settings,
    clock: Clock,
    /// The latest time it has seen: it never acts at an earlier one.
    last: Millis,
    next_seq: Seq,
    last_receipt: Receipt,
    /// Counts what joins the line by command, so that order is kept within a
    /// millisecond.
    ticket: u64,
    ids: Ids,
    store: Store,
    waiting: Waiting,
    groups: Groups,
    /// The groups that can give.
    line: OrderedSet<LineKey>,
    /// The groups that time will let give.
    expected: Expected,
    /// Where the ungrouped messages stand, if any is due.
    plain_line: Option<LineKey>,
    /// Due messages of groups that can give.
    grouped_ready: u64,
    /// The same of their payload bytes.
    grouped_ready_bytes: u64,
    /// Messages of groups that are leased.
    grouped_running: u64,
    leases: Leases,
    /// Pending messages that have a TTL, by its end.
    expiring: TimeIndex,
    records: Records,
    consumers: Consumers,
    schedules: Schedules,
    totals: Totals,
    lateness: Lateness,
    /// What the RATE of the queue has to count.
    window: RateWindow,
    paused_until: Option<Millis>,
    /// Payload bytes of pending and running messages.
    bytes: u64,
    /// Those of running ones.
    running_bytes: u64,
    /// Nothing happens by itself before this.
    wake: Millis,
    effects: Effects,
    /// Ids that someone waits for.
    watched: HashSet<Box<[u8]>, NameHasher>,
    /// When the surroundings will look at the queue next by themselves; a note
    /// of theirs, `None` where they do not know it yet.
    pub noted_wake: Option<Millis>,
    /// Fire times before this were missed on the way of the queue to its place;
    /// a note of the surroundings, too.
    pub noted_arrival: Millis,
    /// In which term of the server the salt of its ids was drawn, 0 in none: it came
    /// from elsewhere, or from an older copy. A note of the surroundings, too.
    pub noted_term: u64,
    redriving: Redriving,
    remains: Remains,
    /// The list of the last deliveries, empty, for the next ones.
    given: Deliveries,
    /// Purged messages whose memory is still to be freed.
    discarded: discard::Discards,
    /// Those that the indexes of all messages at a place still have, by place:
    /// only grouped messages are cut off without them.
    ghosts: [discard::Ghosts; 7],
}

impl Queue {
    /// An empty queue. `salt` is random; it makes generated ids unique beyond
    /// this queue.
    pub fn new(settings: Settings, clock: Clock, salt: u64) -> Queue {
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
            groups: Groups::default(),
            line: OrderedSet::new(),
            expected: Expected::default(),
            plain_line: None,
            grouped_ready: 0,
            grouped_ready_bytes: 0,
            grouped_running: 0,
            leases: Leases::default(),
            expiring: TimeIndex::new(),
            records: Records::default(),
            consumers: Consumers::default(),
            schedules: Schedules::default(),
            totals: Totals::default(),
            lateness: Lateness::default(),
            window: RateWindow::default(),
            paused_until: None,
            bytes: 0,
            running_bytes: 0,
            wake: NEVER,
            effects: Effects::default(),
            watched: HashSet::default(),
            noted_wake: None,
            noted_arrival: 0,
            noted_term: 0,
            redriving: Redriving::default(),
            remains: Remains::default(),
            given: Deliveries::new(),
            discarded: discard::Discards::default(),
            ghosts: Default::default(),
        }
    }

    /// Notes that the queue was made at this moment, which is itself a change.
    pub fn made_at(&mut self, moment: Moment) {
        self.last = self.now(moment);
        self.effects.changed = true;
        self.effects.visible = true;
    }

    /// The time of this queue at a moment of the server.
    pub fn now(&self, moment: Moment) -> Millis {
        match self.clock {
            Clock::Manual(now) => now,
            Clock::Server => moment.ms().max(self.last),
        }
    }

    /// The latest time that this queue has acted at.
    pub fn last_seen(&self) -> Millis {
        self.last
    }

    /// Whether that is the time of the queue at a moment of the server, too.
    pub fn is_at_last(&self, moment: Moment) -> bool {
        self.now(moment) == self.last
    }

    /// Whose time it follows.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Its options.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The last receipt given out, 0 before the first.
    pub fn last_receipt(&self) -> Receipt {
        self.last_receipt
    }

    /// Does one operation. It sees the queue as the last [`Queue::advance`]
    /// left it, so call that first. An error means that nothing has changed.
    pub fn apply(&mut self, op: &Op, moment: Moment) -> Result<Done, Error> {
        let (last, ticket) = (self.last, self.ticket);
        let changed = std::mem::take(&mut self.effects.changed);
        let done = self.perform(op, moment);
        if !self.effects.changed {
            // What changes nothing leaves no trace: no replica hears of it.
            self.last = last;
            self.ticket = ticket;
        }
        self.effects.changed |= changed;
        done
    }

    fn perform(&mut self, op: &Op, moment: Moment) -> Result<Done, Error> {
        let now = self.now(moment);
        // Else nothing has fallen due since the last change, which left the
        // ungrouped messages where they stand. A slice of no steps may have moved
        // the note here and not on a replica: it found nothing to do.
        if self.has_work(now) {
            self.catch_up_with(now);
        }
        self.last = now;
        self.ticket += 1;
        match op {
            Op::Tick => Ok(Done::Ticked(Ticked::default())),
            Op::Alter(changes) => Ok(self.alter(changes, now)),
            Op::Send(send) => self.send(send, now),
            Op::Duplicate => Ok(self.count_duplicate()),
            Op::Fetch(fetch) => self.fetch(fetch, now, moment.receipt),
            Op::Ack { receipts, result } => Ok(self.ack(receipts, result.as_deref(), now)),
            Op::Nack {
                receipts,
                kind,
                error,
                random,
            } => Ok(self.nack(receipts, *kind, error.as_deref(), *random, now)),
            Op::Touch { ms, receipts } => Ok(self.touch(*ms, receipts, now)),
            Op::EndLeases { receipts } => Ok(self.end_leases(receipts, now)),
            Op::Advance { to } => self.advance_manually(*to),
            Op::Cancel { ids } => Ok(self.cancel(ids, now)),
            Op::Reschedule { id, due } => Ok(self.reschedule(id, *due, now)),
            Op::Update { id, payload } => self.update(id, payload, now),
            Op::Redrive(which) => Ok(self.redrive(which, now)),
            Op::Purge { state, group } => Ok(self.purge(*state, group.as_deref(), now)),
            Op::PurgeSome { of, most } => Ok(self.purge_some(of, *most, now)),
            Op::Pause { group, ms } => Ok(self.pause(group.as_deref(), *ms, now)),
            Op::Resume { group } => Ok(self.resume(group.as_deref(), now)),
            Op::GroupSet { group, changes } => Ok(self.set_group(group, changes, now)),
            Op::Schedule(schedule) => self.schedule(schedule, now),
            Op::Unschedule { name } => Ok(self.unschedule(name)),
            Op::CatchUp { since } => Ok(self.catch_up(*since, now)),
        }
    }

    /// What has happened since this was last asked.
    pub fn take_effects(&mut self) -> Effects {
        std::mem::take(&mut self.effects)
    }

    /// The message with this number.
    pub fn message(&self, seq: Seq) -> Option<&Message> {
        self.store.get(seq)
    }

    /// What a message of this queue carries.
    pub fn content(&self, message: &Message) -> Content<'_> {
        self.store.content(message)
    }

    /// The id of a message of this queue.
    pub fn id_of(&self, seq: Seq, message: &Message) -> Id<'_> {
        self.id_with(seq, message, self.store.content(message))
    }

    /// The id of a message that carries this, in the queue still or taken out.
    pub fn id_with<'a>(&self, seq: Seq, message: &Message, content: Content<'a>) -> Id<'a> {
        self.ids.of(seq, message, content)
    }

    /// The id of a message that the last operation has sent without one.
    pub fn new_id(&self, seq: Seq) -> [u8; GENERATED_LEN] {
        generated(seq, self.last, self.ids.salt())
    }

    /// The message with this id.
    pub fn find(&self, id: &[u8]) -> Option<Seq> {
        let seq = self.ids.find(&self.store, id)?;
        (!self.is_purged(seq)).then_some(seq)
    }

    /// The pending messages of a group.
    fn pending<'a>(&self, group: &'a Group) -> Pending<'a> {
        self.groups.pending(group)
    }

    /// Makes sure that the end of this message is told by
    /// [`Queue::take_effects`]. It goes on over a replacement of the message.
    pub fn watch(&mut self, id: &[u8]) {
        self.watched.insert(id.into());
    }

    /// Whether something has expired that is not dead yet.
    pub fn has_overdue_expiry(&self, now: Millis) -> bool {
        self.expiring.first().is_some_and(|((at, _), ())| at <= now)
    }

    /// Whether a receipt belongs to a delivery that is still on.
    pub fn is_running(&self, receipt: Receipt) -> bool {
        self.leases.find(receipt).is_some()
    }

    /// The same queue under another name: nothing runs in it, what ran is
    /// ready again as after a silent nack.
    pub fn copy(&self) -> Queue {
        let mut copy = self.clone();
        copy.watched = HashSet::default();
        copy.noted_wake = None;
        copy.noted_arrival = 0;
        copy.noted_term = 0;
        copy.sweep(usize::MAX);
        let now = copy.last;
        copy.ticket += 1;
        copy.drop_all_remains();
        copy.release_all(now);
        copy.effects = Effects::default();
        copy
    }

    /// Nothing happens by itself before `at`, at the latest.
    fn note(&mut self, at: Millis) {
        self.wake = self.wake.min(at);
    }

    /// How a command joins something to the line.
    fn join(&self, now: Millis) -> Join {
        Join {
            time: now,
            ticket: self.ticket,
        }
    }
}
