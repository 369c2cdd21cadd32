//! The queues of the server, for what a change of one of them means for others
//! ([`dq_queue::keyspace`]).
//!
//! Each change is a log entry of its own, and all are replicated as one command: so a torn log, a
//! replica and a crash have all of them or none.

use crate::redis::{Context, OwnedName};
use dq_queue::dead_letters::Stays;
use dq_queue::family::slot_of_key;
use dq_queue::keyspace::{At, Keyspace, Opened};
use dq_queue::op::{Ending, Happened};
use dq_queue::queue::ends::Owed;
use dq_queue::settings::{Changes, Clock};
use dq_queue::{Done, Error, Moment, Op, Queue};

use super::event_stream::Appended;
use super::{begin_without_events, change_silently, creation, renewing, Begun, Slot};
use crate::server::{clock, wakeups};

/// The changes that followed in other keys, to be published when all are closed.
#[derive(Default)]
pub struct Others {
    pub queues: Vec<(OwnedName, Happened)>,
    pub streams: Vec<Appended>,
    /// Ends of messages that clients wait for.
    pub ended: Vec<(OwnedName, Ending)>,
}

/// The queues of the selected database.
pub struct Keys<'k> {
    pub ctx: &'k mut Context,
    pub others: &'k mut Others,
}

impl Keyspace for Keys<'_> {
    fn change<R>(
        &mut self,
        key: &[u8],
        from: &[u8],
        change: impl FnOnce(&mut dyn Opened) -> R,
    ) -> Result<(R, Option<Owed>), Stays> {
        if self.ctx.is_in_cluster() && slot_of_key(key) != slot_of_key(from) {
            return Err(Stays::Slot);
        }
        let name = OwnedName::new(key);
        let changed = change_silently(self.ctx, name.name(), |slot| {
            let mut opened = OpenedSlot { slot, begun: None };
            let result = change(&mut opened);
            opened.end();
            result
        });
        let (result, mut aftermath) = changed.map_err(|_| Stays::Type)?;
        aftermath.append(self.ctx);
        let happened = aftermath.happened;
        let mut owed = None;
        if let Some(rest) = aftermath.rest.take() {
            owed = rest.owed;
            self.others.streams.extend(rest.others.streams);
            let ended = rest.ended.into_iter();
            self.others
                .ended
                .extend(ended.map(|ending| (OwnedName::new(key), ending)));
        }
        self.others.queues.push((name, happened));
        Ok((result, owed))
    }
}

/// A key that is open for what another change means for it.
struct OpenedSlot<'s, 'c> {
    slot: &'s mut Slot<'c>,
    /// The beginning of the change, once it was made.
    begun: Option<Begun>,
}

impl Opened for OpenedSlot<'_, '_> {
    fn queue(&mut self) -> Option<(&Queue, Moment)> {
        let moment = self.begin().moment;
        let queue = self.slot.split().1?;
        Some((queue, moment))
    }

    fn apply(&mut self, op: &Op, at: At) -> Result<Option<Done>, Error> {
        let Some(queue) = self.slot.split().1 else {
            return match op {
                Op::AckSend(_) => self.create(op).map(Some),
                _ => Ok(None),
            };
        };
        let renewed = renewing(queue, op);
        let begun = match at {
            At::LastChange => Begun::at(queue.last_moment()),
            At::Now => {
                let begun = self.begin();
                self.begun = Some(Begun::at(begun.moment));
                begun
            }
        };
        let op = renewed.as_ref().unwrap_or(op);
        self.slot.apply(begun, op, |_, queue, done| {
            if renewed.is_some() {
                queue.notes.salt_term = wakeups::term();
            }
            done.clone()
        })
    }
}

impl OpenedSlot<'_, '_> {
    /// Begins the change, without due events: these are left to the timer of the queue.
    fn begin(&mut self) -> Begun {
        if let Some(begun) = self.begun {
            return begun;
        }
        let server = self.slot.moment(clock::now());
        let begun = match self.slot.split().1 {
            Some(queue) => begin_without_events(queue, server),
            None => Begun::at(server),
        };
        self.begun = Some(begun);
        begun
    }

    fn create(&mut self, op: &Op) -> Result<Done, Error> {
        let moment = self.begin().moment;
        let creation = creation(&Changes::default(), Clock::Server);
        self.slot
            .apply_to_new(creation, op, moment, |_, _, done| done.clone())
    }

    /// Records the beginning of a change in which nothing was done.
    fn end(self) {
        if let Some(begun) = self.begun.filter(|begun| !begun.before.is_nothing()) {
            // A Tick is never refused.
            let _ = self.slot.apply(begun, &Op::Tick, |_, _, _| ());
        }
    }
}
