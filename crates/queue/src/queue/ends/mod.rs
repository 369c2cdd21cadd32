//! The end of a message, and everything that follows from it.
//!
//! A message ends in [`Queue::end`], and nowhere else. What its end causes is noted there, in one
//! list ([`Owed`]) and in the batches, and is settled before anything else sees the queue:
//! [`Queue::settle`] does the part that concerns this queue, behind each event and each operation.
//! Work that concerns other keys (`letters.rs`, `siblings.rs`) leaves the queue with
//! [`Queue::take_owed`], and [`crate::keyspace::settle`] does it. Until then no operation is
//! applied ([`Queue::apply`]) and no event runs ([`Queue::advance`]).
//!
//! Each of the other files has one kind of consequence, and none of them calls another.

mod endings;
pub(in crate::queue) mod letters;
pub(in crate::queue) mod records;
mod reruns;
mod siblings;
mod transitions;

use std::collections::BTreeMap;

use crate::dead_letters::{Letter, Stays};
use crate::message::kin::News;
use crate::message::state::{Reason, StoredState};
use crate::op::Happened;
use crate::queue::Queue;
use crate::seeded::settles_late;
use crate::settings::{Clock, OnDead};
use crate::{Millis, Seq, IS_SMALL};

/// The number of dead messages for another queue, or of half as many transitions, with which a
/// slice of time ends.
const MANY: usize = if IS_SMALL { 4 } else { 128 };

/// The work that a change of a queue owes to other keys.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Owed {
    /// The dead messages for another queue, if the queue has any.
    pub letters: Option<Letters>,
    /// The reports to parents about their children, in the order in which they are to be counted.
    pub reports: Vec<News>,
}

/// Dead messages for another queue.
#[derive(Debug, Clone, PartialEq)]
pub struct Letters {
    /// The key of the other queue.
    pub to: Box<[u8]>,
    /// The messages, in the order in which they died.
    pub letters: Vec<Letter>,
    /// The reason why further dead messages cannot go, if there are any.
    pub stays: Option<Stays>,
}

/// The consequences of ends of messages that are not settled yet.
#[derive(Debug, Clone, Default)]
pub(in crate::queue) struct Unsettled {
    /// The messages that waited for the end of runs, and are to be sent.
    reruns: Vec<reruns::Ended>,
    /// The dead messages that are on their way to another queue.
    pub(in crate::queue) leaving: Vec<Seq>,
    /// The reports to parents, in order.
    pub(in crate::queue) reports: Vec<News>,
    /// The last report about each set of siblings, as an index into `reports`.
    last_reports: BTreeMap<Seq, usize>,
    /// Whether the next event must see the queue after all of this.
    is_urgent: bool,
}

impl Queue {
    /// Whether the queue owes anything to other keys. Then it refuses operations.
    #[inline]
    pub fn owes(&self) -> bool {
        let unsettled = self.state.seldom.unsettled.as_ref();
        unsettled.is_some_and(|all| !all.leaving.is_empty() || !all.reports.is_empty())
    }

    /// Whether no event may run before what the queue owes is settled. Dead messages that have no
    /// tie to others may leave together.
    #[inline]
    pub(in crate::queue) fn must_settle(&self) -> bool {
        let unsettled = self.state.seldom.unsettled.as_ref();
        unsettled.is_some_and(|all| all.is_urgent || all.leaving.len() >= MANY) && !settles_late()
    }

    /// Whether a slice should end because it has much for other keys.
    #[inline]
    pub fn tells_many(&self) -> bool {
        let told = self.notes.effects.told.as_ref();
        self.must_settle() || told.is_some_and(|told| told.transitions.len() >= 2 * MANY)
    }

    /// Whether the last change has left anything for other keys.
    #[inline]
    pub fn tells(&self) -> bool {
        let told = self.notes.effects.told.as_ref();
        self.owes() || told.is_some_and(|told| !told.transitions.is_empty())
    }

    /// Takes what the queue in the key `from` owes to other keys. The dead messages stay here, in a
    /// state of their own, until [`crate::Op::Moved`] says what has become of them. O(n log n).
    #[inline]
    pub fn take_owed(&mut self, from: &[u8]) -> Option<Owed> {
        match self.owes() {
            true => Some(self.take_all_owed(from)),
            false => None,
        }
    }

    #[cold]
    fn take_all_owed(&mut self, from: &[u8]) -> Owed {
        Owed {
            letters: self.letters(from),
            reports: self.take_reports(),
        }
    }

    /// Whether a queue with CLOCK MANUAL has messages to release, which no timer does.
    pub fn goes_on_manually(&self) -> bool {
        matches!(self.state.clock, Clock::Manual(_)) && !self.owes() && self.has_released()
    }

    /// Drops the reports to parents, which follow in log entries of their own: the change is
    /// repeated from a log.
    pub(crate) fn forget_reports(&mut self) {
        if self.owes() {
            self.take_reports();
        }
    }

    fn take_reports(&mut self) -> Vec<News> {
        let Some(all) = self.state.seldom.unsettled_mut() else {
            return Vec::new();
        };
        all.last_reports.clear();
        let reports = std::mem::take(&mut all.reports);
        if all.leaving.is_empty() && all.reruns.is_empty() {
            self.state.seldom.unsettled = None;
        }
        reports
    }

    /// Whether dead messages are on their way to another queue.
    pub(in crate::queue) fn has_leaving(&self) -> bool {
        let unsettled = self.state.seldom.unsettled.as_ref();
        unsettled.is_some_and(|all| !all.leaving.is_empty())
    }

    /// Notes that a dead message is to go to another queue, of a queue that is loaded.
    pub(in crate::queue) fn owe_letter(&mut self, seq: Seq) {
        let unsettled = self.unsettled_mut();
        unsettled.leaving.push(seq);
        unsettled.is_urgent = true;
    }

    /// Notes a report to a parent.
    pub(in crate::queue) fn owe_report(&mut self, report: News) {
        let unsettled = self.unsettled_mut();
        unsettled.reports.push(report);
        unsettled.is_urgent = true;
    }

    fn unsettled_mut(&mut self) -> &mut Unsettled {
        self.state.seldom.unsettled.get_or_insert_default()
    }

    /// Does what follows from the last event or operation in this queue: sends what waited for the
    /// end of runs, and releases some of the messages that a batch holds no longer. Returns whether
    /// any message was released or died.
    #[inline]
    pub(in crate::queue) fn settle(&mut self, now: Millis) -> bool {
        if self.state.seldom.has_unsettled() {
            self.send_reruns(now);
        }
        self.state.seldom.has_batches() && self.release_some()
    }

    /// Like [`Queue::settle`], behind an operation that follows from a change of another queue. It
    /// lets no further message die: the timer goes on with what batches release.
    #[inline]
    pub(in crate::queue) fn settle_later(&mut self, now: Millis) {
        if self.state.seldom.has_unsettled() {
            self.send_reruns(now);
        }
        self.close_batches();
        if self.has_released() || self.over_count(StoredState::Dead) {
            self.wake_by(0);
        }
    }

    /// A message that neither waits nor runs any longer has ended.
    pub(in crate::queue) fn end(&mut self, seq: Seq, stored: StoredState, now: Millis) {
        self.publish_end(seq, stored);
        self.note_end(seq, stored, now);
        let was_dead = self.state.seldom.has_siblings() && self.is_at(seq, StoredState::Dead);
        if self.state.seldom.has_batches() {
            self.member_ended(seq, stored, now);
        }
        if self.state.seldom.has_siblings() {
            self.child_ended(seq, was_dead, stored);
        }
        if stored == StoredState::Leaving {
            self.set_off(seq, now);
        } else if !(self.indexes.has_reruns && self.end_for_rerun(seq, stored)) {
            self.leave_record_of(seq, stored, now);
        }
    }

    /// A message that neither waits nor runs any longer dies. It goes to another queue if DEADTO
    /// says so.
    pub(in crate::queue) fn die(&mut self, seq: Seq, reason: Reason, now: Millis) {
        self.state.totals.deaths += 1;
        self.state.totals.expired += u64::from(reason == Reason::Expired);
        self.notes.effects.happened.add(Happened::DEAD);
        let group = self.state.store.with(seq, |message| {
            message.extension_mut().texts_mut().reason = Some(reason);
            (message.group, message.payload_len())
        });
        let Some((group, bytes)) = group else {
            return;
        };
        self.indexes.bytes -= bytes;
        if self.state.settings.on_dead == OnDead::Block && self.state.groups.name(group).is_some() {
            self.hold(seq, group);
        }
        let stored = match self.sends_on(reason) {
            true => StoredState::Leaving,
            false => StoredState::Dead,
        };
        self.end(seq, stored, now);
    }
}
