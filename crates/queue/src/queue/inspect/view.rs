//! Read-only views of single messages and of the queue as a whole, for DQ.GET, DQ.INFO and
//! FETCH WITHMETA.

use crate::consumer::Consumer;
use crate::groups::group::Group;
use crate::message::after::Counts;
use crate::message::body::Content;
use crate::message::id::Id;
use crate::message::kin::Parent;
use crate::message::packing::Payload;
use crate::message::score::Score;
use crate::message::state::{Reason, State, StoredState};
use crate::message::{Choices, Message};
use crate::op::Delivered;
use crate::queue::Queue;
use crate::seeded::{seeded, Bug};
use crate::stats::{Lateness, Totals};
use crate::{Millis, Seq, NEVER};

/// All data of a message. All times are Unix ms.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// Id of the message.
    pub id: Id<'a>,
    /// State of the message.
    pub state: State,
    /// The message itself.
    pub message: &'a Message,
    /// Payload, as the exact bytes of the send.
    pub payload: Payload<'a>,
    /// Name of its group.
    pub group: Option<&'a [u8]>,
    /// Its score, if it has a group.
    pub score: Option<Score>,
    /// Consumer that had its last delivery.
    pub consumer: Option<&'a [u8]>,
    /// Name of the batch that it is in.
    pub batch: Option<&'a [u8]>,
    /// The batch that it waits for or has waited for, and the messages of that batch:
    /// now, or when it was held no longer.
    pub after: Option<(&'a [u8], Counts)>,
    /// The message at which it counts when it ends.
    pub parent: Option<&'a Parent>,
    /// How many more failures are forgiven; -1 if all are.
    pub retries_left: i64,
    /// When the first send of its chain of replacements was done (Unix ms), if it has a MAXWAIT.
    pub first_sent_at: Option<Millis>,
    /// When its lease ends, if it is running.
    lease_until: Option<Millis>,
    /// The time at which the message expired, if it has expired and was not moved to dead yet.
    expired_at: Option<Millis>,
}

impl View<'_> {
    /// Number of deliveries so far.
    pub fn attempt(&self) -> u32 {
        self.message.history.attempt()
    }

    /// Number of lease timeouts so far.
    pub fn timeouts(&self) -> u32 {
        self.message.timeouts()
    }

    /// Time of its first delivery (Unix ms), if there was one.
    pub fn first_started_at(&self) -> Option<Millis> {
        known(self.message.first_started_at())
    }

    /// Time of its last delivery (Unix ms), if there was one.
    pub fn started_at(&self) -> Option<Millis> {
        known(self.message.started_at())
    }

    /// When its lease ends (Unix ms), if it is running.
    pub fn lease_until(&self) -> Option<Millis> {
        self.lease_until
    }

    /// When it finished, died or was cancelled (Unix ms), if it did.
    pub fn ended_at(&self) -> Option<Millis> {
        known(self.message.ended_at()).or(self.expired_at)
    }

    /// The reason of its death, if it is dead. A message that was cancelled or redriven
    /// after its death keeps the old reason in its notes, which does not count here.
    pub fn reason(&self) -> Option<Reason> {
        if self.state != State::Dead && !seeded(Bug::CancelledHasReason) {
            return None;
        }
        let overdue = self.expired_at.map(|_| Reason::Expired);
        overdue.or_else(|| self.message.texts()?.reason)
    }
}

fn known(at: Millis) -> Option<Millis> {
    (at != NEVER).then_some(at)
}

/// How many blocked messages [`Queue::oldest_ready_age`] examines at most.
const MAX_SKIPPED: usize = 10_000;

impl Queue {
    /// The view of a stored message. O(1).
    pub fn view(&self, seq: Seq, now: Millis) -> Option<View<'_>> {
        let message = self.state.store.get(seq)?;
        Some(self.view_of(seq, message, self.state.store.content(message), now))
    }

    /// The view of a message that the last operation delivered, even if the queue
    /// has dropped it since. O(1).
    pub fn view_delivered<'a>(&'a self, delivered: &'a Delivered, now: Millis) -> Option<View<'a>> {
        let Some(gone) = &delivered.gone else {
            return self.view(delivered.seq, now);
        };
        Some(View {
            group: gone.group(),
            score: gone.group().map(|_| gone.message.score()),
            batch: gone.batch(),
            parent: gone.parent(),
            ..self.view_of(delivered.seq, &gone.message, gone.content(), now)
        })
    }

    /// The view of a message with the given content.
    pub(in crate::queue) fn view_of<'a>(
        &'a self,
        seq: Seq,
        message: &'a Message,
        content: Content<'a>,
        now: Millis,
    ) -> View<'a> {
        let own = message.choices().and_then(|choices| choices.retries);
        let retries = own.unwrap_or(self.state.settings.retries);
        let retries_left = match retries {
            -1 => -1,
            retries => (retries - i64::from(message.failures())).max(0),
        };
        View {
            id: self.state.ids.of(seq, message, content),
            state: self.state_of(message, now),
            message,
            payload: content.payload,
            group: self.state.groups.name(message.group),
            score: self
                .state
                .groups
                .name(message.group)
                .map(|_| message.score()),
            consumer: self.state.consumers.name(message.history.consumer()),
            batch: self.batch_of(seq),
            after: self.after_of(message),
            parent: self.parent_of(seq),
            retries_left,
            first_sent_at: message
                .choices()
                .and_then(Choices::max_wait)
                .and_then(|_| self.first_sent_at(seq)),
            lease_until: self
                .state
                .leases
                .find(message.receipt())
                .map(|lease| lease.until),
            expired_at: self.expired_at(message, now),
        }
    }

    /// Payload bytes of all pending and running messages.
    pub fn bytes(&self) -> u64 {
        self.indexes.bytes
    }

    /// Number of groups that have pending or running messages, settings, a pause or
    /// a hold.
    pub fn groups_listed(&self) -> usize {
        self.state.groups.listed()
    }

    /// Consumers with a name.
    pub fn consumers(&self) -> Vec<&Consumer> {
        self.state.consumers.known()
    }

    /// Totals since the queue was created.
    pub fn totals(&self) -> &Totals {
        &self.state.totals
    }

    /// Histogram of how late deliveries were.
    pub fn lateness(&self) -> &Lateness {
        &self.state.lateness
    }

    /// The earliest due time (Unix ms) of all delayed and retry messages that lies
    /// after `now`.
    pub fn next_due_at(&self, now: Millis) -> Option<Millis> {
        self.indexes.waiting.next_due(now)
    }

    /// How long, in ms, the ready message that has waited longest has been due.
    /// `None` if no message is ready.
    ///
    /// If very many blocked messages are older, only the first message of each group that
    /// can give is considered, so the age may be too low.
    pub fn oldest_ready_age(&self, now: Millis) -> Option<Millis> {
        let plain = self
            .indexes
            .waiting
            .plain
            .indexes(StoredState::Due)
            .filter_map(|index| Some(index.first()?.0 .0))
            .min();
        let grouped = self.oldest_grouped_ready();
        let oldest = match (plain, grouped) {
            (Some(a), Some(b)) => a.min(b),
            (a, b) => a.or(b)?,
        };
        Some(now.saturating_sub(oldest))
    }

    /// How long, in ms, the message has been due that has waited longest for a delivery
    /// that counts: whether it is ready, blocked by its group or a pause, or was delivered
    /// and has come back, also if it waits for its retry. `None` if there is none.
    ///
    /// If there are more than 1,024 different times, the age may be too low by a small
    /// part of it. O(lanes).
    pub fn oldest_due_age(&self, now: Millis) -> Option<Millis> {
        let due = self.indexes.waiting.earliest_due(now);
        // After a clock was set back, the first due time of a retry may be still to come.
        let first = self.indexes.first_dues.earliest().filter(|at| *at <= now);
        let oldest = match (due, first) {
            (Some(a), Some(b)) => a.min(b),
            (a, b) => a.or(b)?,
        };
        Some(now.saturating_sub(oldest))
    }

    fn oldest_grouped_ready(&self) -> Option<Millis> {
        if self.indexes.grouped_ready == 0 {
            return None;
        }
        let gives = |seq: Seq| {
            let message = self.state.store.get(seq);
            let group = message.and_then(|message| self.state.groups.get(message.group));
            group.is_some_and(Group::is_in_line)
        };
        let lanes = self.indexes.waiting.grouped.indexes(StoredState::Due);
        let found = lanes.filter_map(|due| {
            let mut due = due.iter().take(MAX_SKIPPED);
            due.find(|((_, seq), ())| gives(*seq))
        });
        found.map(|((at, _), ())| at).min().or_else(|| {
            let heads = self.indexes.ready_line.iter().take(MAX_SKIPPED);
            heads
                .filter_map(|key| Some(self.state.store.get(key.seq)?.due))
                .min()
        })
    }
}
